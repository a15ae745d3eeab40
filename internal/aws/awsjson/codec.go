// SPDX-License-Identifier: Apache-2.0

package awsjson

import (
	"mime"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/jsonvalue"
)

// Codec is the protocol of a version, 1.0 or 1.1.
type Codec struct{ Version string }

var _ awsshape.Codec = Codec{}

// The codes of requests that are refused before an action sees them.
const (
	UnknownOperationException = "UnknownOperationException"
	ValidationException       = "ValidationException"
)

// Route finds the operation by X-Amz-Target, such as AmazonSSM.GetParameter.
func (Codec) Route(service *awsshape.Service, request awsshape.Request, limits awsshape.Limits) (awsshape.Call, error) {
	target := request.Get("X-Amz-Target")
	name, ok := strings.CutPrefix(target, service.Target+".")
	op := service.Operation(name)
	if !ok || op == nil || request.Method != awsshape.Post {
		return awsshape.Call{}, awsfault.Errorf(UnknownOperationException, "no operation of %s is a %.20s with X-Amz-Target %.100q", service.Name, request.Method, target)
	}
	if kind := request.Get("Content-Type"); kind != "" && !isJSON(kind) {
		return awsshape.Call{}, awsfault.Errorf(UnknownOperationException, "the Content-Type is %.100q: %s reads application/x-amz-json-1.0, application/x-amz-json-1.1 and application/json", kind, service.Name)
	}
	return awsshape.Call{Operation: op, Input: func() (awsshape.Object, error) {
		if op.Input == nil {
			return awsshape.Object{}, nil
		}
		object, err := jsonvalue.Read(op.Input, request.Body, limits)
		if err != nil {
			return nil, err
		}
		if missing := op.Input.Missing(object); len(missing) > 0 {
			return nil, awsfault.Nulls(nullCode(service.Name), missing)
		}
		return object, nil
	}}, nil
}

// nullCode is the code of a request without a required member. CloudWatch Logs has one of its own.
func nullCode(service string) string {
	if service == "logs" {
		return "InvalidParameterException"
	}
	return ValidationException
}

// isJSON reports whether a body of that media type is read as JSON. Others, such as what a page in a browser can send,
// name no operation.
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/x-amz-json-1.0" || kind == "application/x-amz-json-1.1" || kind == "application/json")
}

// Encode writes the output as JSON. An operation without one answers with an empty body.
func (c Codec) Encode(op *awsshape.Operation, requestID string, output any) (awsshape.Response, error) {
	response := awsshape.Response{Status: 200, Header: c.headers(requestID)}
	if op.Output == nil {
		return response, nil
	}
	var err error
	response.Body, err = jsonvalue.Append(make([]byte, 0, 1024), op.Output, awsshape.ValueOf(output))
	return response, err
}

// EncodeError writes a refusal, with its code in the body.
func (c Codec) EncodeError(service *awsshape.Service, requestID string, problem *awsfault.Error) awsshape.Response {
	header := c.headers(requestID)
	if service.Name == "sqs" {
		header["X-Amzn-Query-Error"] = queryCode(problem.Code) + ";" + sender(service.Status(problem))
	}
	return awsshape.Response{Status: service.Status(problem), Header: header, Body: jsonvalue.AppendError(nil, service, problem)}
}

// queryCode is the code that SQS had before it spoke JSON, by which clients still tell its errors apart: SDKs take it
// for the code where there is one (Smithy, "awsQueryCompatible").
func queryCode(code string) string {
	const before = "AWS.SimpleQueueService."
	switch code {
	case "QueueDoesNotExist":
		return before + "NonExistentQueue"
	case "QueueNameExists":
		return "QueueAlreadyExists"
	case "BatchEntryIdsNotDistinct", "EmptyBatchRequest", "InvalidBatchEntryId", "TooManyEntriesInBatchRequest", "MessageNotInflight":
		return before + code
	}
	return code
}

func sender(status int) string {
	if status < 500 {
		return "Sender"
	}
	return "Receiver"
}

func (c Codec) headers(requestID string) map[string]string {
	return map[string]string{"Content-Type": "application/x-amz-json-" + c.Version, "X-Amzn-Requestid": requestID}
}
