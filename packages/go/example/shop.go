// Package shop is the application under test: it stores orders.
package shop

import (
	"errors"
	"io"
	"time"

	"github.com/couchbase/gocb/v2"
)

// Order is what the shop stores.
type Order struct {
	Status string `json:"status"`
}

// PlaceOrder stores an order once, also if an answer is lost.
//
// An insert may fail after it was applied. It is safe to repeat: then the order exists.
func PlaceOrder(orders *gocb.Collection, key string, order Order) error {
	var err error
	for range 5 {
		_, err = orders.Insert(key, order, nil)
		if err == nil || errors.Is(err, gocb.ErrDocumentExists) {
			return nil
		}
		unknown := errors.Is(err, gocb.ErrTimeout) ||
			errors.Is(err, gocb.ErrRequestCanceled) || errors.Is(err, io.EOF)
		if !unknown {
			return err
		}
	}
	return err
}

// StatusOf returns the status of an order, or "unknown" if the database is too slow.
func StatusOf(orders *gocb.Collection, key string, patience time.Duration) (string, error) {
	found, err := orders.Get(key, &gocb.GetOptions{Timeout: patience})
	if errors.Is(err, gocb.ErrTimeout) {
		return "unknown", nil
	}
	if err != nil {
		return "", err
	}
	var order Order
	err = found.Content(&order)
	return order.Status, err
}
