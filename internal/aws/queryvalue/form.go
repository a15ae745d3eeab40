// SPDX-License-Identifier: Apache-2.0

package queryvalue

import (
	"fmt"
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
	// Twice is for a parameter that comes twice in a strict form.
	Twice string
	// Strict refuses a parameter without "=", names of other characters than letters, digits, "-" and "_", and numbers
	// in another spelling than the usual one. Items of a list behind a gap count as unknown. It has the words of STS
	// and IAM.
	Strict bool
}

// Form is a form by the paths of its parameters.
type Form struct {
	Action, Version string

	root   *node
	nodes  int
	limits awsshape.Limits
	codes  Codes
}

// node is a parameter, or the beginning of the names of parameters.
type node struct {
	has   bool
	value string
	parts map[string]*node
}

// FormOf is the form of a request: the body of a POST, or the query of a GET without what a presigned one adds for its
// signature. ok is false for other methods, and for a GET that has a body, which is not what was asked for.
func FormOf(r awsshape.Request) (form []byte, ok bool) {
	switch {
	case r.Method == awsshape.Post:
		return r.Body, true
	case r.Method != awsshape.Get || len(r.Body) > 0:
		return nil, false
	}
	return []byte(strings.Join(unsigned(r.Query), "&")), true
}

// Beside is what a POST, whose form is its body, has in its query besides; empty if that is the signature alone.
func Beside(r awsshape.Request) string {
	if r.Method != awsshape.Post {
		return ""
	}
	return strings.Join(unsigned(r.Query), "&")
}

// unsigned are the parameters of a query without those of a signature.
func unsigned(query string) (pairs []string) {
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); !slices.Contains(signing, name) {
			pairs = append(pairs, pair)
		}
	}
	return pairs
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
		rawName, rawValue, assigned := strings.Cut(pair, "=")
		if codes.Strict && !assigned {
			return nil, awsfault.Errorf(codes.Malformed, "the parameter %.100q has no =", pair)
		}
		name, err := f.unescape(rawName, "name", maxName)
		if err != nil {
			return nil, err
		}
		value, err := f.unescape(rawValue, "value of "+fmt.Sprintf("%.100q", name), limits.Value)
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

// unescape decodes a name or a value. A strict form is told which of them is wrong, and another form how it was
// written.
func (f *Form) unescape(raw, what string, most int) (string, error) {
	short, long := fmt.Sprintf("%.100q", raw), fmt.Sprintf("%.50q…", raw)
	if f.codes.Strict {
		short, long = "the "+what, "the "+what
	}
	text, err := url.QueryUnescape(raw)
	switch {
	case err != nil:
		return "", awsfault.Errorf(f.codes.Malformed, "%s has a %% without two hexadecimal digits behind it", short)
	case len(text) > most:
		return "", awsfault.Errorf(f.codes.Malformed, "%s is %d bytes long: the limit is %d", long, len(text), most)
	case !utf8.ValidString(text):
		return "", awsfault.Errorf(f.codes.Malformed, "%s is not UTF-8", short)
	}
	return text, nil
}

// strange reports a character that a strict form has in no name, between dots.
func strange(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// nodesPerParam is how many parts of their own the names of all parameters may have in the mean. Names of lists in lists
// have two or three, since they begin alike.
const nodesPerParam = 4

func (f *Form) set(name, value string) error {
	n, depth := f.root, 0
	for part := range strings.SplitSeq(name, ".") {
		if f.codes.Strict && (part == "" || strings.ContainsFunc(part, strange)) {
			return awsfault.Errorf(f.codes.Malformed, "%.100q is not a valid parameter name: use letters, digits and . - _", name)
		}
		if part == "" {
			return awsfault.Errorf(f.codes.Malformed, "%.100q is not the name of a parameter", name)
		}
		if depth++; depth > 2*f.limits.Depth {
			return awsfault.Errorf(f.codes.Malformed, "the name %.100q has more than %d parts", name, 2*f.limits.Depth)
		}
		next := n.parts[part]
		if next == nil {
			// A node takes some 300 bytes, and nobody has proven yet who sends this.
			if f.nodes++; f.nodes > nodesPerParam*f.limits.Params {
				return awsfault.Errorf(f.codes.Malformed, "the names of the parameters have more than %d different parts", nodesPerParam*f.limits.Params)
			}
			next = &node{}
			if n.parts == nil {
				n.parts = map[string]*node{}
			}
			n.parts[part] = next
		}
		n = next
	}
	switch {
	case n.has && f.codes.Strict:
		return awsfault.Errorf(f.codes.Twice, "the parameter %.100q comes twice: which one is meant?", name)
	case n.has:
		return awsfault.Errorf(f.codes.Malformed, "the parameter %.100q comes twice", name)
	}
	n.has, n.value = true, value
	return nil
}
