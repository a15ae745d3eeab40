// SPDX-License-Identifier: Apache-2.0

package awsquery

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Limits bound one request.
type Limits struct {
	Body   int64 // bytes, of the body or of the query string
	Params int
	Key    int // bytes of a parameter's name
	Value  int // bytes of a parameter's value, decoded
}

// DefaultLimits leave room for the largest policy document that IAM's API lets through (131,072 characters) and for every list it has.
func DefaultLimits() Limits { return Limits{Body: 1 << 20, Params: 500, Key: 256, Value: 256 << 10} }

// getAction is the one action that may come by GET: presigned, it is the token of an EKS cluster.
const getAction = "GetCallerIdentity"

// Read takes a request apart. Every error is an *awsfault.Error. The writer is used to end the connection when the body is too large.
func Read(w http.ResponseWriter, r *http.Request, limits Limits) (Call, error) {
	if r.URL.Path != "/" && r.URL.Path != "" {
		return Call{}, Errorf(InvalidAction, "the path is %.100q: the query protocol has only /", r.URL.Path)
	}
	if r.Method == http.MethodGet {
		return readGet(r, limits)
	}
	if r.Method != http.MethodPost {
		return Call{}, Errorf(InvalidAction, "the method is %.20q: send a POST with a form", r.Method)
	}
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		return Call{}, Errorf(MalformedQueryString, "a POST has its parameters in the body: the URL must have no query")
	}
	if err := checkForm(r.Header); err != nil {
		return Call{}, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limits.Body))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return Call{}, Errorf(RequestEntityTooLarge, "the body is larger than %d bytes", limits.Body)
	} else if err != nil {
		return Call{}, Because(err, MalformedQueryString, "the body ended early")
	}
	params, err := parse(string(body), limits)
	if err != nil {
		return Call{}, err
	}
	call, err := take(params)
	call.Body = body
	call.JSON = call.Action == getAction && wantsJSON(r.Header)
	return call, err
}

func readGet(r *http.Request, limits Limits) (Call, error) {
	if int64(len(r.URL.RawQuery)) > limits.Body {
		return Call{}, Errorf(RequestEntityTooLarge, "the query is larger than %d bytes", limits.Body)
	}
	if r.ContentLength != 0 {
		return Call{}, Errorf(MalformedQueryString, "a GET has its parameters in the URL: it must have no body")
	}
	params, err := parse(r.URL.RawQuery, limits)
	if err != nil {
		return Call{}, err
	}
	for _, name := range []string{
		"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders",
		"X-Amz-Signature", "X-Amz-Security-Token",
	} {
		delete(params, name) // the signature's, checked by package sigv4
	}
	call, err := take(params)
	if err == nil && call.Action != getAction {
		err = Errorf(InvalidAction, "the action %.100q cannot come by GET: send a POST with a form", call.Action)
	}
	call.JSON = wantsJSON(r.Header)
	return call, err
}

// checkForm refuses a body that is something else than a plain form, and so a browser that was made to post text.
func checkForm(header http.Header) error {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset, has := params["charset"]
	if err != nil || kind != "application/x-www-form-urlencoded" || has && !strings.EqualFold(charset, "utf-8") {
		return Errorf(MalformedQueryString, "the Content-Type is %.100q: it must be application/x-www-form-urlencoded, in UTF-8", header.Get("Content-Type"))
	}
	if header.Get("Content-Encoding") != "" {
		return Errorf(MalformedQueryString, "the Content-Encoding is %.100q: send the form as it is", header.Get("Content-Encoding"))
	}
	return nil
}

// parse reads a form. Unlike net/url it refuses a parameter that comes twice, a name without "=", and anything but UTF-8.
func parse(form string, limits Limits) (url.Values, error) {
	params := url.Values{}
	if form == "" {
		return params, nil
	}
	if n := strings.Count(form, "&") + 1; n > limits.Params {
		return nil, Errorf(MalformedQueryString, "there are %d parameters: %d may come at once", n, limits.Params)
	}
	for pair := range strings.SplitSeq(form, "&") {
		rawKey, rawValue, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, Errorf(MalformedQueryString, "the parameter %.100q has no =", pair)
		}
		key, err := unescape(rawKey, "name", limits.Key)
		if err != nil {
			return nil, err
		}
		value, err := unescape(rawValue, "value of "+fmt.Sprintf("%.100q", key), limits.Value)
		if err != nil {
			return nil, err
		}
		if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !nameRune(r) }) {
			return nil, Errorf(MalformedQueryString, "%.100q is not a valid parameter name: use letters, digits and . - _", key)
		}
		if params.Has(key) {
			return nil, Errorf(InvalidQueryParameter, "the parameter %.100q comes twice: which one is meant?", key)
		}
		params.Set(key, value)
	}
	return params, nil
}

func unescape(raw, what string, most int) (string, error) {
	text, err := url.QueryUnescape(raw)
	switch {
	case err != nil:
		return "", Errorf(MalformedQueryString, "the %s has a %% without two hexadecimal digits behind it", what)
	case len(text) > most:
		return "", Errorf(MalformedQueryString, "the %s is %d bytes long: the limit is %d", what, len(text), most)
	case !utf8.ValidString(text):
		return "", Errorf(MalformedQueryString, "the %s is not UTF-8", what)
	}
	return text, nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_'
}

// take finds the action among the parameters.
func take(params url.Values) (Call, error) {
	action, version := params.Get("Action"), params.Get("Version")
	delete(params, "Action")
	delete(params, "Version")
	call := Call{Action: action, Params: params}
	if action == "" {
		return call, Errorf(MissingAction, "the parameter Action is missing")
	}
	for _, api := range []API{IAM(), STS()} {
		if version == api.Version {
			call.API = api
			return call, nil
		}
	}
	return call, Errorf(InvalidAction, "there is no action %.100q of version %.100q: IAM's version is %s and STS's %s",
		action, version, IAM().Version, STS().Version)
}

func wantsJSON(header http.Header) bool {
	for _, line := range header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "application/json" {
				return true
			}
		}
	}
	return false
}
