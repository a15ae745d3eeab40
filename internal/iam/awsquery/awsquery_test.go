// SPDX-License-Identifier: Apache-2.0

package awsquery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/iam/awsquery"
)

const form = "application/x-www-form-urlencoded"

func read(method, target, kind, body string) (awsquery.Call, error) {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	r.Header.Set("Content-Type", kind)
	return awsquery.Read(httptest.NewRecorder(), r, awsquery.DefaultLimits())
}

func codeOf(err error) string {
	if known := (*awsfault.Error)(nil); errors.As(err, &known) {
		return known.Code
	}
	return fmt.Sprint(err)
}

func TestRead(t *testing.T) {
	const get = "Action=GetUser&Version=2010-05-08"
	many := ""
	for i := range 500 {
		many += fmt.Sprintf("&a%d=", i)
	}
	for _, c := range []struct{ name, method, target, kind, body, want string }{
		{"a form is read", "POST", "/", form + "; charset=UTF-8", get, "<nil>"},
		{"a path is refused", "POST", "/x", form, get, "InvalidAction"},
		{"PUT is refused", "PUT", "/", form, get, "InvalidAction"},
		{"a POST with a query is refused", "POST", "/?Action=DeleteUser", form, get, "MalformedQueryString"},
		{"a POST with an empty query is refused", "POST", "/?", form, get, "MalformedQueryString"},
		{"text is no form", "POST", "/", "text/plain", get, "MalformedQueryString"},
		{"another charset is refused", "POST", "/", form + "; charset=utf-16", get, "MalformedQueryString"},
		{"no content type is refused", "POST", "/", "", get, "MalformedQueryString"},
		{"an empty body has no action", "POST", "/", form, "", "MissingAction"},
		{"an unknown version is refused", "POST", "/", form, "Action=GetUser&Version=2010-05-09", "InvalidAction"},
		{"a missing version is refused", "POST", "/", form, "Action=GetUser", "InvalidAction"},
		{"an action that comes twice is refused", "POST", "/", form, get + "&Action=DeleteUser", "InvalidQueryParameter"},
		{"a parameter that comes twice in the same way is refused", "POST", "/", form, get + "&a=1&a=1", "InvalidQueryParameter"},
		{"a parameter that comes twice in two encodings is refused", "POST", "/", form, get + "&a=1&%61=1", "InvalidQueryParameter"},
		{"a name without = is refused", "POST", "/", form, get + "&a", "MalformedQueryString"},
		{"a name that is empty is refused", "POST", "/", form, get + "&=a", "MalformedQueryString"},
		{"an empty pair is refused", "POST", "/", form, get + "&", "MalformedQueryString"},
		{"a bad escape is refused", "POST", "/", form, get + "&a=%zz", "MalformedQueryString"},
		{"a name with a sign is refused", "POST", "/", form, get + "&a%5B0%5D=x", "MalformedQueryString"},
		{"a value that is not UTF-8 is refused", "POST", "/", form, get + "&a=%ff", "MalformedQueryString"},
		{"a long name is refused", "POST", "/", form, get + "&" + strings.Repeat("a", 257) + "=", "MalformedQueryString"},
		{"a long value is refused", "POST", "/", form, get + "&a=" + strings.Repeat("a", 256<<10+1), "MalformedQueryString"},
		{"a value as long as may be is read", "POST", "/", form, get + "&a=" + strings.Repeat("a", 256<<10), "<nil>"},
		{"a large body is refused", "POST", "/", form, get + strings.Repeat("a", 1<<20), "RequestEntityTooLarge"},
		{"too many parameters are refused", "POST", "/", form, get + many, "MalformedQueryString"},
		{"a presigned GetCallerIdentity is read", "GET", "/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Date=1", "", "", "<nil>"},
		{"another action by GET is refused", "GET", "/?Action=GetSessionToken&Version=2011-06-15", "", "", "InvalidAction"},
		{"a GET with a body is refused", "GET", "/?Action=GetCallerIdentity&Version=2011-06-15", form, "a=b", "MalformedQueryString"},
		{"a GET with a long query is refused", "GET", "/?a=" + strings.Repeat("a", 1<<20), "", "", "RequestEntityTooLarge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, err := read(c.method, c.target, c.kind, c.body)
			if got := codeOf(err); got != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if err == nil && string(call.Body) != c.body {
				t.Error("the body that was signed is lost")
			}
			if err != nil && len(err.Error()) > 600 {
				t.Error("the error repeats too much of what came:", len(err.Error()))
			}
		})
	}
}

func TestReadRefusesAnEncodedBody(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Action=GetUser&Version=2010-05-08"))
	r.Header.Set("Content-Type", form)
	r.Header.Set("Content-Encoding", "gzip")
	if _, err := awsquery.Read(httptest.NewRecorder(), r, awsquery.DefaultLimits()); codeOf(err) != "MalformedQueryString" {
		t.Error(err)
	}
}

type input struct {
	Name    string `query:"UserName,required"`
	Path    *string
	Most    *int32 `query:"MaxItems"`
	Default bool   `query:"SetAsDefault"`
	Tags    []tag
	Keys    []string `query:"TagKeys"`
	Entries map[string]string
	Inner   struct{ A string }
}

func TestDecode(t *testing.T) {
	path, most := "/", int32(7)
	for _, c := range []struct {
		name, form string
		want       input
		err        string
	}{
		{"one value", "UserName=a", input{Name: "a"}, ""},
		{"values of every type", "UserName=a&Path=/&MaxItems=7&SetAsDefault=true&Inner.A=x", input{Name: "a", Path: &path, Most: &most, Default: true, Inner: struct{ A string }{"x"}}, ""},
		{"a list of texts", "UserName=a&TagKeys.member.2=y&TagKeys.member.1=x", input{Name: "a", Keys: []string{"x", "y"}}, ""},
		{"a list of structs", "UserName=a&Tags.member.1.Key=k&Tags.member.1.Value=v&Tags.member.2.Key=l", input{Name: "a", Tags: []tag{{"k", "v"}, {"l", ""}}}, ""},
		{"a map", "UserName=a&Entries.entry.1.key=k&Entries.entry.1.value=v", input{Name: "a", Entries: map[string]string{"k": "v"}}, ""},
		{"an empty list", "UserName=a&Tags=", input{Name: "a"}, ""},
		{"a required value is missing", "Path=/", input{}, "1 validation error detected: Value null at 'userName' failed to satisfy constraint: Member must not be null"},
		{"a required value is empty", "UserName=", input{}, "UserName is empty"},
		{"an unknown parameter", "UserName=a&PermissionsBoundary=x", input{}, `"PermissionsBoundary"`},
		{"another case", "UserName=a&path=/", input{}, `"path"`},
		{"a list with a gap", "UserName=a&TagKeys.member.1=x&TagKeys.member.3=y", input{}, `"TagKeys.member.3"`},
		{"a list from zero", "UserName=a&TagKeys.member.0=x", input{}, `"TagKeys.member.0"`},
		{"a list with leading zeros", "UserName=a&TagKeys.member.01=x", input{}, `"TagKeys.member.01"`},
		{"a list without member", "UserName=a&TagKeys.1=x", input{}, `"TagKeys.1"`},
		{"a list as one value", "UserName=a&TagKeys=x", input{}, "TagKeys is a list"},
		{"one value as a list", "UserName.member.1=a", input{}, "UserName is one value"},
		{"an unknown part of a struct", "UserName=a&Tags.member.1.Color=x", input{}, `"Tags.member.1.Color"`},
		{"a number with a plus", "UserName=a&MaxItems=%2B7", input{}, "whole number"},
		{"a number with zeros", "UserName=a&MaxItems=007", input{}, "whole number"},
		{"a number that is too large", "UserName=a&MaxItems=2147483648", input{}, "whole number"},
		{"a truth in capitals", "UserName=a&SetAsDefault=TRUE", input{}, "true or false"},
		{"a map without a key", "UserName=a&Entries.entry.1.value=v", input{}, "Entries.entry.1.key is missing"},
		{"a map without a value", "UserName=a&Entries.entry.1.key=v", input{}, "Entries.entry.1.value"},
		{"a map with a key twice", "UserName=a&Entries.entry.1.key=k&Entries.entry.1.value=v&Entries.entry.2.key=k&Entries.entry.2.value=v", input{}, "a second time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			params, err := url.ParseQuery(c.form)
			if err != nil {
				t.Fatal(err)
			}
			var got input
			err = awsquery.Decode(params, &got)
			if c.err != "" {
				if codeOf(err) != "ValidationError" || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// plain are markers that anybody can make.
type plain struct{}

func (plain) Seal(last string) (string, error) { return "after " + last, nil }

func (plain) Open(marker string) (string, bool) {
	last, ok := strings.CutPrefix(marker, "after ")
	return last, ok && last != ""
}

func TestPages(t *testing.T) {
	items := []string{"d", "b", "a", "c"}
	same := func(s string) string { return s }
	one, zero, thousand, more := int32(1), int32(0), int32(1000), int32(1001)
	bad, empty := "b", ""
	for name, c := range map[string]struct {
		marker *string
		most   *int32
		fine   bool
	}{
		"one item is a page": {nil, &one, true}, "no item is none": {nil, &zero, false}, "a thousand is the most": {nil, &thousand, true},
		"a thousand and one is too many": {nil, &more, false}, "a marker of one's own is refused": {&bad, nil, false}, "an empty marker is refused": {&empty, nil, false},
	} {
		if _, _, err := awsquery.PageOf(items, same, plain{}, c.marker, c.most); (err == nil) != c.fine || c.marker != nil && err.Error() != "ValidationError: Invalid Marker." {
			t.Error(name, err)
		}
	}
	first, page, err := awsquery.PageOf(items, same, plain{}, nil, &one)
	if err != nil || !page.IsTruncated || len(first) != 1 || first[0] != "a" {
		t.Fatal(first, page, err)
	}
	// The item that the first page ended with is deleted, and another comes before it: nothing is lost or told twice.
	rest, page, err := awsquery.PageOf([]string{"d", "b", "0", "c"}, same, plain{}, &page.Marker, nil)
	if diff := cmp.Diff([]string{"b", "c", "d"}, rest); diff != "" || page.IsTruncated || page.Marker != "" || err != nil {
		t.Error(diff, page, err)
	}
}

func TestErrorsBeforeAnAPIIsKnown(t *testing.T) {
	s, _, _ := newServer(t, admitAll)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != 400 || !strings.HasPrefix(w.Body.String(), `<ErrorResponse xmlns="http`) || !strings.Contains(w.Body.String(), "<Code>MissingAction</Code>") {
		t.Error(w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodGet, "/?Action=GetCallerIdentity&Version=2011-06-15&Extra=1", nil)
	r.Header.Set("Accept", "text/html, application/json;q=0.9")
	w = httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var got struct {
		Error     struct{ Code, Type string }
		RequestID string `json:"RequestId"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Error.Code != "ValidationError" || got.Error.Type != "Sender" || got.RequestID == "" {
		t.Error(err, w.Body)
	}
	r = httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Action=Fly&Version=2010-05-08"))
	r.Header.Set("Content-Type", form)
	w = httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "<Code>InvalidAction</Code>") {
		t.Error(w.Code, w.Body)
	}
}

// FuzzRead holds that a form which is read says the same as net/url does, has each name once, and that Decode never panics.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"Action=CreateUser&Version=2010-05-08&UserName=a&Tags.member.1.Key=k", "Action=a&Version=2011-06-15&UserName=%20&Entries.entry.1.key=a&Entries.entry.1.value=b",
		"Action=&Version=", "a&b", "UserName=a&UserName.member.1=b&Tags=&Tags.member.1=", "Action=x&Version=2010-05-08&Inner.A=1&Inner=2&TagKeys.member.1=",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		call, err := read(http.MethodPost, "/", form, body)
		if err != nil {
			if code := codeOf(err); code == err.Error() {
				t.Fatal("an error without a code:", err)
			}
			return
		}
		want, err := url.ParseQuery(body)
		if err != nil {
			t.Fatalf("net/url refuses what was read: %v", err)
		}
		want.Del("Action")
		want.Del("Version")
		if diff := cmp.Diff(want, call.Params); diff != "" {
			t.Fatal(diff)
		}
		var in input
		if err := awsquery.Decode(call.Params, &in); err != nil && codeOf(err) != "ValidationError" {
			t.Fatal(err)
		}
	})
}
