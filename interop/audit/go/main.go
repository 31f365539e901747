// hashicorp/go-retryablehttp with its usual policy and shorter waits.
package main

import (
	"io"
	"log"
	"os"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

func main() {
	var body any
	method := os.Getenv("AUDIT_METHOD")
	if method != "GET" {
		content, err := os.ReadFile(os.Getenv("AUDIT_FILE"))
		check(err)
		body = content
	}
	request, err := retryablehttp.NewRequest(method, os.Getenv("AUDIT_URL"), body)
	check(err)
	if key := os.Getenv("AUDIT_KEY"); key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	client := retryablehttp.NewClient()
	client.RetryMax = 3
	client.RetryWaitMin = 500 * time.Millisecond
	client.HTTPClient.Timeout = 2 * time.Second
	response, err := client.Do(request)
	check(err)
	_, err = io.ReadAll(response.Body)
	check(err)
	if response.StatusCode >= 400 {
		log.Fatal(response.Status)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
