// SPDX-License-Identifier: Apache-2.0

package queryvalue

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

// maxName bounds the name of a parameter, in bytes.
const maxName = 256

// Codes are the error codes of a protocol for what cannot be read.
type Codes struct {
	Malformed string // the form itself
	Value     string // a parameter's value
}

// Form is a form by the paths of its parameters.
type Form struct {
	Action, Version string

	root   *node
	limits awsshape.Limits
	codes  Codes
}

// node is a parameter, or the beginning of the names of parameters.
type node struct {
	has   bool
	value string
	parts map[string]*node
}

// FormOf is the form of a request: the body of a POST, or the query of a GET without what a presigned one adds for its signature. ok is false for other
// methods, and for a GET that has a body, which is not what was asked for.
func FormOf(r awsshape.Request) (form []byte, ok bool) {
	switch {
	case r.Method == awsshape.Post:
		return r.Body, true
	case r.Method != awsshape.Get || len(r.Body) > 0:
		return nil, false
	}
	var pairs []string
	for pair := range strings.SplitSeq(r.Query, "&") {
		if name, _, _ := strings.Cut(pair, "="); !slices.Contains(signing, name) {
			pairs = append(pairs, pair)
		}
	}
	return []byte(strings.Join(pairs, "&")), true
}

// signing are the parameters of the signature of a presigned request.
var signing = []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature", "X-Amz-Security-Token"}

// Parse reads a form. Every error is an *awsfault.Error.
func Parse(body []byte, limits awsshape.Limits, codes Codes) (*Form, error) {
	f := &Form{root: &node{}, limits: limits, codes: codes}
	text := string(body)
	if text == "" {
		return f, nil
	}
	if n := strings.Count(text, "&") + 1; n > limits.Params {
		return nil, awsfault.Errorf(codes.Malformed, "there are %d parameters: %d may come at once", n, limits.Params)
	}
	for pair := range strings.SplitSeq(text, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := f.unescape(rawName, maxName)
		if err != nil {
			return nil, err
		}
		value, err := f.unescape(rawValue, limits.Value)
		if err != nil {
			return nil, err
		}
		if err := f.set(name, value); err != nil {
			return nil, err
		}
	}
	for name, into := range map[string]*string{"Action": &f.Action, "Version": &f.Version} {
		if n := f.root.parts[name]; n != nil && n.has && n.parts == nil {
			*into = n.value
			delete(f.root.parts, name)
		}
	}
	return f, nil
}

func (f *Form) unescape(raw string, most int) (string, error) {
	text, err := url.QueryUnescape(raw)
	switch {
	case err != nil:
		return "", awsfault.Errorf(f.codes.Malformed, "%.100q has a %% without two hexadecimal digits behind it", raw)
	case len(text) > most:
		return "", awsfault.Errorf(f.codes.Malformed, "%.50q… is %d bytes long: the limit is %d", raw, len(text), most)
	case !utf8.ValidString(text):
		return "", awsfault.Errorf(f.codes.Malformed, "%.100q is not UTF-8", raw)
	}
	return text, nil
}

func (f *Form) set(name, value string) error {
	n, depth := f.root, 0
	for part := range strings.SplitSeq(name, ".") {
		if part == "" {
			return awsfault.Errorf(f.codes.Malformed, "%.100q is not the name of a parameter", name)
		}
		if depth++; depth > 2*f.limits.Depth {
			return awsfault.Errorf(f.codes.Malformed, "the name %.100q has more than %d parts", name, 2*f.limits.Depth)
		}
		next := n.parts[part]
		if next == nil {
			next = &node{}
			if n.parts == nil {
				n.parts = map[string]*node{}
			}
			n.parts[part] = next
		}
		n = next
	}
	if n.has {
		return awsfault.Errorf(f.codes.Malformed, "the parameter %.100q comes twice", name)
	}
	n.has, n.value = true, value
	return nil
}
