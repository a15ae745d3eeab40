// SPDX-License-Identifier: Apache-2.0

package awsroute

import (
	"encoding/json"
	"encoding/xml"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

const textXML = "text/xml; charset=utf-8"

type fault struct {
	Type    string `xml:",omitempty"`
	Code    string
	Message string
}

// Refuse writes a refusal in the form of a protocol, for services that have no table. The code is in the header as well
// as in the body: some SDKs read the one, and some the other.
func Refuse(protocol awsshape.Protocol, requestID string, e *awsfault.Error) awsshape.Response {
	answer := awsshape.Response{Status: e.HTTPStatus(), Header: map[string]string{
		"Content-Type": textXML, "X-Amzn-Requestid": requestID, "X-Content-Type-Options": "nosniff",
	}}
	sender := "Sender"
	if answer.Status >= 500 {
		sender = "Receiver"
	}
	var value any
	switch protocol {
	case awsshape.EC2Query:
		value = struct {
			XMLName   xml.Name `xml:"Response"`
			Errors    []fault  `xml:"Errors>Error"`
			RequestID string
		}{Errors: []fault{{Code: e.Code, Message: e.Message}}, RequestID: requestID}
	case awsshape.QueryXML:
		value = struct {
			XMLName   xml.Name `xml:"ErrorResponse"`
			Error     fault
			RequestID string `xml:"RequestId"`
		}{Error: fault{sender, e.Code, e.Message}, RequestID: requestID}
	case restXML:
		value = struct {
			XMLName   xml.Name `xml:"Error"`
			Code      string
			Message   string
			RequestID string `xml:"RequestId"`
		}{Code: e.Code, Message: e.Message, RequestID: requestID}
	default:
		answer.Header["Content-Type"] = map[awsshape.Protocol]string{awsshape.JSON10: "application/x-amz-json-1.0", awsshape.JSON11: "application/x-amz-json-1.1"}[protocol]
		if answer.Header["Content-Type"] == "" {
			answer.Header["Content-Type"] = "application/json"
		}
		answer.Header["X-Amzn-Errortype"] = e.Code
		answer.Body, _ = json.Marshal(map[string]string{"__type": e.Code, "message": e.Message}) // texts alone
		return answer
	}
	answer.Body, _ = xml.Marshal(value) // texts alone
	return answer
}
