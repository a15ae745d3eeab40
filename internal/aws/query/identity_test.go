// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
)

const formType = "application/x-www-form-urlencoded"

func ask(method, target, kind, body string) (awsshape.Call, error) {
	path, query, asks := strings.Cut(target, "?")
	return Identity{}.Route(awstable.Identity(), awsshape.Request{
		Method: method, Path: path, Query: query, Asks: asks && query == "", Header: map[string][]string{"Content-Type": {kind}}, Body: []byte(body),
	}, awsshape.DefaultLimits())
}

func codeOf(err error) string {
	if known := (*awsfault.Error)(nil); errors.As(err, &known) {
		return known.Code
	}
	return fmt.Sprint(err)
}

func TestIdentityRequests(t *testing.T) {
	const get = "Action=GetUser&Version=2010-05-08"
	many := ""
	for i := range 500 {
		many += fmt.Sprintf("&a%d=", i)
	}
	for _, c := range []struct{ name, method, target, kind, body, want string }{
		{"a form is read", "POST", "/", formType + "; charset=UTF-8", get, "<nil>"},
		{"a path is refused", "POST", "/x", formType, get, "InvalidAction"},
		{"PUT is refused", "PUT", "/", formType, get, "InvalidAction"},
		{"a POST with a query is refused", "POST", "/?Action=DeleteUser", formType, get, "MalformedQueryString"},
		{"a POST with an empty query is refused", "POST", "/?", formType, get, "MalformedQueryString"},
		{"text is no form", "POST", "/", "text/plain", get, "MalformedQueryString"},
		{"another charset is refused", "POST", "/", formType + "; charset=utf-16", get, "MalformedQueryString"},
		{"no content type is refused", "POST", "/", "", get, "MalformedQueryString"},
		{"an empty body has no action", "POST", "/", formType, "", "MissingAction"},
		{"an unknown version is refused", "POST", "/", formType, "Action=GetUser&Version=2010-05-09", "InvalidAction"},
		{"a missing version is refused", "POST", "/", formType, "Action=GetUser", "InvalidAction"},
		{"an action of the other service is refused", "POST", "/", formType, "Action=GetUser&Version=2011-06-15", "InvalidAction"},
		{"an unknown action is refused", "POST", "/", formType, "Action=Fly&Version=2010-05-08", "InvalidAction"},
		{"an action that comes twice is refused", "POST", "/", formType, get + "&Action=DeleteUser", "InvalidQueryParameter"},
		{"a parameter that comes twice in the same way is refused", "POST", "/", formType, get + "&a=1&a=1", "InvalidQueryParameter"},
		{"a parameter that comes twice in two encodings is refused", "POST", "/", formType, get + "&a=1&%61=1", "InvalidQueryParameter"},
		{"a name without = is refused", "POST", "/", formType, get + "&a", "MalformedQueryString"},
		{"a name that is empty is refused", "POST", "/", formType, get + "&=a", "MalformedQueryString"},
		{"an empty pair is refused", "POST", "/", formType, get + "&", "MalformedQueryString"},
		{"a bad escape is refused", "POST", "/", formType, get + "&a=%zz", "MalformedQueryString"},
		{"a name with a sign is refused", "POST", "/", formType, get + "&a%5B0%5D=x", "MalformedQueryString"},
		{"a value that is not UTF-8 is refused", "POST", "/", formType, get + "&a=%ff", "MalformedQueryString"},
		{"a long name is refused", "POST", "/", formType, get + "&" + strings.Repeat("a", 257) + "=", "MalformedQueryString"},
		{"a long value is refused", "POST", "/", formType, get + "&a=" + strings.Repeat("a", maxValue+1), "MalformedQueryString"},
		{"a value as long as may be is read", "POST", "/", formType, get + "&a=" + strings.Repeat("a", maxValue), "<nil>"},
		{"too many parameters are refused", "POST", "/", formType, get + many, "MalformedQueryString"},
		{"a presigned GetCallerIdentity is read", "GET", "/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Date=1", "", "", "<nil>"},
		{"another action by GET is refused", "GET", "/?Action=GetSessionToken&Version=2011-06-15", "", "", "InvalidAction"},
		{"a GET with a body is refused", "GET", "/?Action=GetCallerIdentity&Version=2011-06-15", formType, "a=b", "MalformedQueryString"},
		{"a GET with a long query is refused", "GET", "/?a=" + strings.Repeat("a", 512<<10), "", "", "RequestEntityTooLarge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ask(c.method, c.target, c.kind, c.body)
			if got := codeOf(err); got != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if err != nil && len(err.Error()) > 600 {
				t.Error("the error repeats too much of what came:", len(err.Error()))
			}
		})
	}
	encoded := awsshape.Request{Method: "POST", Path: "/", Header: map[string][]string{"Content-Type": {formType}, "Content-Encoding": {"gzip"}}, Body: []byte(get)}
	if _, err := (Identity{}).Route(awstable.Identity(), encoded, awsshape.DefaultLimits()); codeOf(err) != "MalformedQueryString" {
		t.Error("an encoded body:", err)
	}
}

func TestIdentityInputs(t *testing.T) {
	for _, c := range []struct {
		name, form string
		want       awsshape.Object
		err        string
	}{
		{"one value", "CreateUser&UserName=a", awsshape.Object{"UserName": "a"}, ""},
		{"values of every type", "CreatePolicyVersion&PolicyArn=a&PolicyDocument=b&SetAsDefault=true", awsshape.Object{"PolicyArn": "a", "PolicyDocument": "b", "SetAsDefault": true}, ""},
		{"a number", "ListUsers&MaxItems=7", awsshape.Object{"MaxItems": int64(7)}, ""},
		{"a list of texts", "UntagUser&UserName=a&TagKeys.member.2=y&TagKeys.member.1=x", awsshape.Object{"UserName": "a", "TagKeys": []any{"x", "y"}}, ""},
		{"a list of structs", "CreateUser&UserName=a&Tags.member.1.Key=k&Tags.member.1.Value=", awsshape.Object{"UserName": "a", "Tags": []any{awsshape.Object{"Key": "k", "Value": ""}}}, ""},
		{"an empty list", "CreateUser&UserName=a&Tags=", awsshape.Object{"UserName": "a", "Tags": []any{}}, ""},
		{"an empty list that is required", "TagUser&UserName=a&Tags=", awsshape.Object{"UserName": "a", "Tags": []any{}}, ""},
		{"a required value is missing", "CreateUser&Path=/", nil, "1 validation error detected: Value null at 'userName' failed to satisfy constraint: Member must not be null"},
		{"a required part is missing", "CreateUser&UserName=a&Tags.member.1.Key=k", nil, "Value null at 'tags.1.member.value'"},
		{"a required value is empty", "CreateUser&UserName=", nil, "UserName is empty"},
		{"an unknown parameter", "CreateUser&UserName=a&Color=x", nil, `"Color"`},
		{"another case", "CreateUser&UserName=a&path=/", nil, `"path"`},
		{"a parameter of an action without any", "GetAccountSummary&UserName=a", nil, `"UserName"`},
		{"a list with a gap", "UntagUser&UserName=a&TagKeys.member.1=x&TagKeys.member.3=y", nil, `"TagKeys.member.3"`},
		{"a list from zero", "CreateUser&UserName=a&Tags.member.0.Key=x", nil, `"Tags.member.0.Key"`},
		{"a list with leading zeros", "CreateUser&UserName=a&Tags.member.01.Key=x", nil, `"Tags.member.01.Key"`},
		{"a list without member", "CreateUser&UserName=a&Tags.1.Key=x", nil, `"Tags.1.Key"`},
		{"a list as one value", "CreateUser&UserName=a&Tags=x", nil, "Tags is a list: write Tags.member.1"},
		{"one value as a list", "CreateUser&UserName.member.1=a", nil, "UserName is one value: it has no parts such as UserName.member.1"},
		{"one value with parts", "CreateUser&UserName=a&UserName.b=c", nil, `"UserName.b"`},
		{"an unknown part of a struct", "CreateUser&UserName=a&Tags.member.1.Key=k&Tags.member.1.Value=v&Tags.member.1.Color=x", nil, `"Tags.member.1.Color"`},
		{"a struct with a value", "CreateUser&UserName=a&Tags.member.1.Key=k&Tags.member.1.Value=v&Tags.member.1=x", nil, `"Tags.member.1"`},
		{"a number with a plus", "ListUsers&MaxItems=%2B7", nil, "whole number"},
		{"a number with zeros", "ListUsers&MaxItems=007", nil, "whole number"},
		{"a number that is too large", "ListUsers&MaxItems=2147483648", nil, "whole number"},
		{"a truth in capitals", "CreatePolicyVersion&PolicyArn=a&PolicyDocument=b&SetAsDefault=TRUE", nil, "true or false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, err := ask("POST", "/", formType, "Version=2010-05-08&Action="+c.form)
			if err != nil {
				t.Fatal(err)
			}
			got, err := call.Input()
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

func TestIdentityAnswers(t *testing.T) {
	type tag struct{ Key, Value string }
	type user struct {
		UserName, Path string
		CreateDate     time.Time
		Tags           *[]tag
	}
	type page struct {
		IsTruncated bool
		Marker      *string
	}
	made := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	iam := awstable.Service("iam")
	for want, c := range map[string]struct {
		operation string
		output    any
	}{
		// The order is that of the fields, and an empty text, list or number is written.
		`<ListUsersResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><ListUsersResult><IsTruncated>false</IsTruncated><Users><member><UserName>a&#34;&#39;&lt;&amp;&#xA;</UserName><Path></Path><CreateDate>2026-11-21T14:00:00Z</CreateDate><Tags></Tags></member></Users></ListUsersResult><ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></ListUsersResponse>`: {
			"ListUsers", struct {
				page
				Users []user
			}{Users: []user{{UserName: "a\"'<&\n", CreateDate: made, Tags: &[]tag{}}}},
		},
		`<DeleteUserResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></DeleteUserResponse>`:                                      {"DeleteUser", nil},
		`<UpdateRoleResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><UpdateRoleResult></UpdateRoleResult><ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></UpdateRoleResponse>`: {"UpdateRole", struct{}{}},
		`<GetAccountSummaryResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><GetAccountSummaryResult><SummaryMap><entry><key>Users</key><value>1</value></entry><entry><key>Roles</key><value>0</value></entry></SummaryMap></GetAccountSummaryResult><ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></GetAccountSummaryResponse>`: {
			"GetAccountSummary", struct{ SummaryMap []awsshape.Entry }{[]awsshape.Entry{{Key: "Users", Value: 1}, {Key: "Roles"}}},
		},
	} {
		answer, err := Identity{}.Encode(iam.Operation(c.operation), "id", c.output)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(answer.Body)); diff != "" || answer.Header["Cache-Control"] != "no-store" || answer.Header["Content-Type"] != "text/xml; charset=utf-8" {
			t.Error(diff, answer.Header)
		}
	}
}

// A refusal is in the form that the request asks for, and in the namespace of the service that it is for, if it names
// one.
func TestIdentityRefusals(t *testing.T) {
	for _, c := range []struct{ method, target, accept, body, want string }{
		{"GET", "/", "", "", `<ErrorResponse xmlns="http://webservices.amazon.com/AWSFault/2005-15-09"><Error><Type>Sender</Type><Code>MissingAction</Code><Message>the parameter Action is missing</Message></Error><RequestId>id</RequestId></ErrorResponse>`},
		{"POST", "/", "application/json", "Action=Fly&Version=2010-05-08", `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>InvalidAction</Code><Message>muster has no action &#34;Fly&#34; of iam 2010-05-08</Message></Error><RequestId>id</RequestId></ErrorResponse>`},
		{"GET", "/?Action=Fly&Version=2011-06-15", "text/html, application/json;q=0.9", "", `{"Error":{"Type":"Sender","Code":"InvalidAction","Message":"the action \"Fly\" cannot come by GET: send a POST with a form"},"RequestId":"id"}`},
	} {
		path, query, _ := strings.Cut(c.target, "?")
		r := awsshape.Request{Method: c.method, Path: path, Query: query, Header: map[string][]string{"Content-Type": {formType}, "Accept": {c.accept}}, Body: []byte(c.body)}
		call, err := Identity{}.Route(awstable.Identity(), r, awsshape.DefaultLimits())
		var fault *awsfault.Error
		if !errors.As(err, &fault) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(call.Codec.EncodeError(call.Service, "id", fault).Body)); diff != "" {
			t.Error(diff)
		}
	}
}

// A form that is read says the same as net/url does, and has each name once; the input of its action is one or refused.
func FuzzIdentity(f *testing.F) {
	for _, seed := range []string{
		"Action=CreateUser&Version=2010-05-08&UserName=a&Tags.member.1.Key=k", "Action=AssumeRole&Version=2011-06-15&RoleArn=%20&PolicyArns.member.1.arn=a",
		"Action=&Version=", "a&b", "Action=CreateUser&Version=2010-05-08&UserName=a&UserName.member.1=b&Tags=&Tags.member.1=", "Action=ListUsers&Version=2010-05-08&MaxItems=1&MaxItems.a=2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		call, err := ask("POST", "/", formType, body)
		if err != nil {
			if code := codeOf(err); code == err.Error() {
				t.Fatal("an error without a code:", err)
			}
			return
		}
		all, err := url.ParseQuery(body)
		if err != nil {
			t.Fatalf("net/url refuses what was read: %v", err)
		}
		for name, values := range all {
			if len(values) != 1 {
				t.Fatalf("%s was read, and comes %d times", name, len(values))
			}
		}
		if all.Get("Action") != call.Operation.Name || all.Get("Version") != call.Service.Version {
			t.Fatalf("%v was taken for %s of %s", all, call.Operation.Name, call.Service.Name)
		}
		if _, err := call.Input(); err != nil && codeOf(err) != "ValidationError" {
			t.Fatal(err)
		}
	})
}
