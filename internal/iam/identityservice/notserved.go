// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"mime"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"muster.dev/muster/internal/iam/sigv4"
)

// unknownOperation is the code that services of AWS answer with what they do not do.
const unknownOperation = "UnknownOperationException"

// routed hands requests to the service that they are signed for. Tools send those of all services here when their endpoint is set for all of
// them; those of services that are not here are refused. Each protocol has its own form of errors, and a client of one makes nothing of the
// errors of STS and IAM.
func (s *Service) routed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed, err := sigv4.ReadHeader(sigv4.Request{Header: r.Header, RawQuery: r.URL.RawQuery})
		ours := signed.Service == "sts" || signed.Service == "iam" || signed.Service == "eks" && strings.Trim(r.URL.Path, "/") == "" // which EKS has nothing at
		if err != nil || ours {
			next.ServeHTTP(w, r)
			return
		}
		if handler, ok := s.services[signed.Service]; ok {
			handler.ServeHTTP(w, r)
			return
		}
		line := lineOf(r.Context())
		line.api, line.accessKey, line.code = signed.Service, signed.AccessKeyID, unknownOperation
		line.requestID = uuid.Must(uuid.NewRandomFromReader(rand.Reader)).String()
		body, kind := refusalFor(signed.Service, r, line.requestID)
		header := w.Header()
		header.Set("Content-Type", kind)
		header.Set("X-Amzn-Errortype", unknownOperation) // as Go spells x-amzn-ErrorType
		header.Set("X-Amzn-Requestid", line.requestID)
		header.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusNotFound) // nothing of the server's: SDKs would ask again
		_, _ = w.Write(body)               //nolint:gosec // G705: no page but XML or JSON, escaped by their encoders, with nosniff; a lost client has gone
	})
}

// notHere says which service is not here, and how its requests go elsewhere.
func notHere(service string) string {
	return "muster has no such service here, and this request is for the service " + service + ": AWS_ENDPOINT_URL sends those of all services here. To send it to AWS, " +
		"use another shell, or take back what `muster env` set: unset AWS_ENDPOINT_URL AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_CA_BUNDLE SSL_CERT_FILE AWS_REGION AWS_DEFAULT_REGION"
}

// refusalFor is the answer in the form of errors that the client of a service reads: EC2 and S3 have one of their own, the query protocol
// has a form, and all others read JSON.
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
