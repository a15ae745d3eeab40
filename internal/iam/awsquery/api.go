// SPDX-License-Identifier: Apache-2.0

package awsquery

import (
	"net/url"
)

// API is one service with its version and the namespace of its answers.
type API struct{ Name, Version, Namespace string }

// IAM is Identity and Access Management.
func IAM() API {
	return API{Name: "iam", Version: "2010-05-08", Namespace: "https://iam.amazonaws.com/doc/2010-05-08/"}
}

// STS is the Security Token Service.
func STS() API {
	return API{Name: "sts", Version: "2011-06-15", Namespace: "https://sts.amazonaws.com/doc/2011-06-15/"}
}

// Call is one request as read from the wire, before its sender is known.
type Call struct {
	API       API
	Action    string
	RequestID string
	Params    url.Values // without Action, Version and the X-Amz-* of a presigned request
	Body      []byte     // as received, for the payload hash of the signature
	JSON      bool       // the answer is wanted as JSON
}

// List is a list in an answer: <Tags><member>…</member></Tags>.
type List[T any] struct {
	Members []T `xml:"member" json:"member"`
}

// ListOf makes a List.
func ListOf[T any](items []T) List[T] { return List[T]{Members: items} }
