// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/awsroute"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/sigv4"
)

// unknownOperation is the code that services of AWS answer with what they do not do.
const unknownOperation = "UnknownOperationException"

// routed hands requests to the service that they are signed for. Tools whose endpoint is set for all services send
// requests of all of them; requests of services that are not here are refused. Each protocol has its own form of
// errors: clients of other protocols cannot read the errors of STS and IAM.
func (f *Front) routed(w http.ResponseWriter, r *http.Request) {
	signed, err := sigv4.ReadHeader(sigv4.Request{Header: r.Header, RawQuery: r.URL.RawQuery})
	if err != nil {
		f.unsigned(w, r)
		return
	}
	token := signed.Service == "eks" && atRoot(r)
	if handler, ok := f.handlers[signed.Service]; ok && !token {
		handler.ServeHTTP(w, r)
		return
	}
	if token {
		f.identity.ServeHTTP(w, r)
		return
	}
	record := RecordOf(r.Context())
	record.Service, record.AccessKey, record.Code = signed.Service, signed.AccessKeyID, unknownOperation
	record.RequestID = uuid.Must(uuid.NewRandomFromReader(rand.Reader)).String()
	body, kind := refusalFor(signed.Service, r, record.RequestID)
	header := w.Header()
	header.Set("Content-Type", kind)
	header.Set("X-Amzn-Errortype", unknownOperation) // as Go spells x-amzn-ErrorType
	header.Set("X-Amzn-Requestid", record.RequestID)
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusNotFound) // nothing of the server's: SDKs would ask again
	_, _ = w.Write(body)               //nolint:gosec // G705: no page but XML or JSON, escaped by their encoders, with nosniff; a lost client has gone
}

// atRoot reports whether a request is for /, where EKS has nothing: a request there that is signed for EKS is a token
// of a cluster, which is STS's.
func atRoot(r *http.Request) bool { return strings.Trim(r.URL.Path, "/") == "" }

// maxUnsigned is how much of the form of an unsigned request is looked at for its version. The services look at no
// more.
const maxUnsigned = 256 << 10

// unsigned hands a request without a signature in its header to the service that it is presigned for, or else to the
// one that it seems to be for, which refuses it in its own form. STS and IAM have all others.
func (f *Front) unsigned(w http.ResponseWriter, r *http.Request) {
	var name string
	if signed, err := sigv4.ReadPresigned(sigv4.Request{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header, RawQuery: r.URL.RawQuery}); err == nil {
		if name = signed.Service; name == "eks" && atRoot(r) {
			name = ""
		}
	} else {
		var body []byte
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
			body, _ = io.ReadAll(io.LimitReader(r.Body, maxUnsigned)) // the service that reads on says what is wrong with it
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		}
		name = awsroute.Unsigned(awsshape.Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header, Body: body})
	}
	if handler, ok := f.handlers[name]; ok {
		handler.ServeHTTP(w, r)
		return
	}
	f.identity.ServeHTTP(w, r)
}

// notHere says which service is not here, and how its requests go elsewhere.
func notHere(service string) string {
	return "muster has no such service here, and this request is for the service " + service + ": AWS_ENDPOINT_URL sends those of all services here. To send it to AWS, " +
		"use another shell, or take back what `muster env` set: unset AWS_ENDPOINT_URL AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_CA_BUNDLE SSL_CERT_FILE AWS_REGION AWS_DEFAULT_REGION"
}

// refusalFor is the answer in the form of errors that the client of a service reads: EC2 and S3 have one of their own,
// the query protocol has a form, and all others read JSON.
func refusalFor(service string, r *http.Request, requestID string) (body []byte, contentType string) {
	type fault struct {
		Code, Message string
		RequestID     string `xml:"RequestId,omitempty"`
	}
	const asXML = "text/xml; charset=utf-8"
	form, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var answer any
	switch {
	case service == "ec2":
		answer = struct {
			XMLName   xml.Name `xml:"Response"`
			Errors    []fault  `xml:"Errors>Error"`
			RequestID string
		}{Errors: []fault{{Code: unknownOperation, Message: notHere(service)}}, RequestID: requestID}
	case service == "s3":
		answer = struct {
			XMLName xml.Name `xml:"Error"`
			fault
		}{fault: fault{unknownOperation, notHere(service), requestID}}
	case form == "application/x-www-form-urlencoded":
		answer = struct {
			XMLName   xml.Name `xml:"ErrorResponse"`
			Error     fault
			RequestID string `xml:"RequestId"`
		}{Error: fault{Code: unknownOperation, Message: notHere(service)}, RequestID: requestID}
	default:
		body, _ = json.Marshal(map[string]string{"__type": unknownOperation, "message": notHere(service)}) // texts alone
		if strings.HasPrefix(form, "application/x-amz-json-") {
			return body, form
		}
		return body, "application/json"
	}
	body, _ = xml.Marshal(answer) // texts alone
	return body, asXML
}
