"""boto3: an object of S3 for GET and PUT, a message to SQS for POST."""

import boto3
from botocore.config import Config
from request import BODY, METHOD, URL

config = Config(
    retries={"mode": "standard"}, read_timeout=2, region_name="us-east-1", s3={"addressing_style": "path"}
)
login = {"aws_access_key_id": "audit", "aws_secret_access_key": "audit"}


def client(service):
    return boto3.client(service, endpoint_url=URL, config=config, **login)


match METHOD:
    case "GET":
        client("s3").get_object(Bucket="b", Key="k")["Body"].read()
    case "PUT":
        client("s3").put_object(Bucket="b", Key="k", Body=BODY)
    case "POST":
        client("sqs").send_message(QueueUrl=URL, MessageBody="pay 5")
