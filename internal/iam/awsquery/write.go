// SPDX-License-Identifier: Apache-2.0

package awsquery

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
)

// faultNamespace is that of errors that no API is to blame for.
const faultNamespace = "http://webservices.amazon.com/AWSFault/2005-15-09"

// Time is a moment in an answer: 2026-11-21T14:00:00Z.
type Time struct{ time.Time }

// MarshalText writes the moment as AWS does, in whole seconds.
func (t Time) MarshalText() ([]byte, error) {
	return []byte(t.UTC().Format("2006-01-02T15:04:05Z")), nil
}

// MarshalJSON is the same in quotes; time.Time's own would show fractions of a second.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format("2006-01-02T15:04:05Z") + `"`), nil
}

// EncodeDocument writes a policy document as IAM's answers carry it: percent-encoded, a space as %20.
func EncodeDocument(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

type metadata struct {
	RequestID string `xml:"RequestId" json:"RequestId"`
}

type fault struct {
	Type    string `json:"Type"`
	Code    string `json:"Code"`
	Message string `json:"Message"`
}

// answer is the body of a success. A nil result is that of an action that returns nothing.
func answer(call Call, result any) ([]byte, error) {
	if call.JSON {
		inner := map[string]any{"ResponseMetadata": metadata{call.RequestID}}
		if result != nil {
			inner[call.Action+"Result"] = result
		}
		return json.Marshal(map[string]any{call.Action + "Response": inner})
	}
	var out bytes.Buffer
	encoder := xml.NewEncoder(&out)
	outer := xml.StartElement{Name: xml.Name{Local: call.Action + "Response"}, Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: call.API.Namespace}}}
	if err := encoder.EncodeToken(outer); err != nil {
		return nil, err
	}
	if result != nil {
		if err := encoder.EncodeElement(result, element(call.Action+"Result")); err != nil {
			return nil, fmt.Errorf("writing the result of %s: %w", call.Action, err)
		}
	}
	if err := encoder.EncodeElement(metadata{call.RequestID}, element("ResponseMetadata")); err != nil {
		return nil, err
	}
	if err := encoder.EncodeToken(outer.End()); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil { // flushes
		return nil, err
	}
	return out.Bytes(), nil
}

// refusal is the body of an error.
func refusal(call Call, e *awsfault.Error) ([]byte, error) {
	inner := fault{Type: "Sender", Code: e.Code, Message: e.Message}
	if e.HTTPStatus() >= http.StatusInternalServerError { // SDKs are told whose fault it was
		inner.Type = "Receiver"
	}
	if call.JSON {
		return json.Marshal(struct {
			Error     fault
			RequestID string `json:"RequestId"`
		}{inner, call.RequestID})
	}
	namespace := call.API.Namespace
	if namespace == "" {
		namespace = faultNamespace
	}
	return xml.Marshal(struct {
		XMLName   xml.Name `xml:"ErrorResponse"`
		Namespace string   `xml:"xmlns,attr"`
		Error     fault
		RequestID string `xml:"RequestId"`
	}{Namespace: namespace, Error: inner, RequestID: call.RequestID})
}

func element(name string) xml.StartElement { return xml.StartElement{Name: xml.Name{Local: name}} }

// send writes an answer with the headers that every answer has. Answers hold credentials, so nobody may keep them.
func send(w http.ResponseWriter, call Call, status int, body []byte, now time.Time) {
	header := w.Header()
	header.Set("Content-Type", "text/xml; charset=utf-8")
	if call.JSON {
		header.Set("Content-Type", "application/json")
	}
	header.Set("X-Amzn-Requestid", call.RequestID)
	header.Set("Date", now.UTC().Format(http.TimeFormat))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // G705: XML or JSON from an encoder, with nosniff; the error means that the client has gone
}
