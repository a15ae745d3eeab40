// SPDX-License-Identifier: Apache-2.0

package restjson

import (
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/jsonvalue"
)

// Encode writes the output as JSON, and those of its members that are headers as headers.
func (Codec) Encode(op *awsshape.Operation, requestID string, output any) (awsshape.Response, error) {
	response := awsshape.Response{Status: op.Status, Header: headers(requestID), Body: []byte("{}")}
	if op.Status == 204 {
		response.Body = nil // which no answer of that status has
		delete(response.Header, "Content-Type")
		return response, nil
	}
	if op.Output == nil {
		return response, nil
	}
	value := awsshape.ValueOf(output)
	body, err := jsonvalue.Append(make([]byte, 0, 1024), op.Output, value)
	if err != nil {
		return awsshape.Response{}, err
	}
	response.Body = body
	err = op.Output.EachMember(value, func(m *awsshape.Member, inner awsshape.Value) error {
		if m.Place != awsshape.Header {
			return nil
		}
		text, err := m.Shape.Text(inner, awsshape.HTTPDate)
		response.Header[m.Out] = text
		return err
	})
	return response, err
}

// EncodeError writes the error's code into the header and the body: some clients read one, some the other.
func (Codec) EncodeError(service *awsshape.Service, requestID string, problem *awsfault.Error) awsshape.Response {
	response := awsshape.Response{Status: service.Status(problem), Header: headers(requestID)}
	response.Header["X-Amzn-Errortype"] = problem.Code
	response.Body = jsonvalue.AppendError(nil, service, problem)
	return response
}

func headers(requestID string) map[string]string {
	return map[string]string{"Content-Type": "application/json", "X-Amzn-Requestid": requestID}
}
