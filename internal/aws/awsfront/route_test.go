// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/sigv4"
)

// signedGate lets in requests that are signed for the service that they came to, as the identity service does. It
// remembers who was asked for what.
type signedGate struct {
	admitted []string // the services
	unsigned []string // the actions that were asked for without a signature
}

func (g *signedGate) Admit(r *http.Request, service string, _ []byte) (Caller, error) {
	request := sigv4.Request{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header, RawQuery: r.URL.RawQuery}
	signed, err := sigv4.ReadHeader(request)
	if err != nil {
		signed, err = sigv4.ReadPresigned(request)
	}
	switch {
	case err != nil:
		return nil, refusedBy("MissingAuthenticationToken", "Request is missing Authentication Token")
	case signed.Service != service:
		return nil, refusedBy("SignatureDoesNotMatch", "Credential should be scoped to correct service: '%s'.", service)
	}
	g.admitted = append(g.admitted, service)
	return caller{"a"}, nil
}

func (g *signedGate) Unsigned(_ *http.Request, service, action string) (Caller, error) {
	g.unsigned = append(g.unsigned, service+":"+action)
	if service+":"+action != "sts:AssumeRoleWithWebIdentity" {
		return nil, refusedBy("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	return caller{"nobody"}, nil
}

func (*signedGate) Authorize(Caller, string, Target) error { return nil }

// routes is a front with an action of each kind, which all note that they were done.
type routes struct {
	gate  *signedGate
	front *Front
	done  []string
}

type nothing struct{}

func doing[In any](w *routes, service, action string, spec Spec[In, nothing]) {
	spec.Do = func(context.Context, *Call, *In) (*nothing, error) {
		w.done = append(w.done, service+":"+action)
		return nil, nil
	}
	Register(w.front, service, action, spec)
}

type exchangeIn struct{ RoleArn, RoleSessionName, WebIdentityToken string }

func newRoutes(t *testing.T) *routes {
	t.Helper()
	w := &routes{gate: &signedGate{}}
	var err error
	if w.front, err = New(Config{Gate: w.gate}); err != nil {
		t.Fatal(err)
	}
	everything := func(context.Context, *Call, *nothing) ([]Target, error) { return []Target{{Resource: "*"}}, nil }
	doing(w, "eks", "ListClusters", Spec[nothing, nothing]{})
	doing(w, "ec2", "DescribeRegions", Spec[nothing, nothing]{})
	doing(w, "autoscaling", "DescribePolicies", Spec[nothing, nothing]{})
	doing(w, "kms", "ListKeys", Spec[nothing, nothing]{})
	doing(w, "iam", "GetAccountSummary", Spec[nothing, nothing]{About: everything})
	doing(w, "sts", "GetCallerIdentity", Spec[nothing, nothing]{Rights: Everybody})
	doing(w, "sts", "AssumeRoleWithWebIdentity", Spec[exchangeIn, nothing]{Rights: Itself, Unsigned: true})
	return w
}

const (
	whoForm      = "Action=GetCallerIdentity&Version=2011-06-15"
	exchangeForm = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=a&RoleSessionName=b&WebIdentityToken=c"
)

// send sends a request that is presigned for a service, or not signed if that is empty.
func (w *routes) send(t *testing.T, presignedFor, method, target, body, kind string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "https://localhost"+target, strings.NewReader(body))
	if presignedFor != "" {
		query := r.URL.Query()
		query.Set("X-Amz-Expires", "60")
		r.URL.RawQuery = query.Encode()
		credentials := aws.Credentials{AccessKeyID: "AKIAAAAAAAAAAAAAAAAA", SecretAccessKey: "x"}
		signed, _, err := v4.NewSigner().PresignHTTP(t.Context(), credentials, r, "UNSIGNED-PAYLOAD", presignedFor, "us-east-1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		r = httptest.NewRequestWithContext(t.Context(), method, signed, strings.NewReader(body))
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer := httptest.NewRecorder()
	w.front.ServeHTTP(answer, r)
	return answer
}

const form = "application/x-www-form-urlencoded"

// The service that a presigned request is signed for reads it, whatever form it has: no other service does what the
// form says.
func TestAPresignedRequestIsThatOfItsService(t *testing.T) {
	for name, c := range map[string]struct {
		signedFor, method, target, body string
		done                            string
		has                             string
	}{
		"EC2's":                                {"ec2", "GET", "/?Action=DescribeRegions&Version=2016-11-15", "", "ec2:DescribeRegions", ""},
		"STS's":                                {"sts", "GET", "/?" + whoForm, "", "sts:GetCallerIdentity", ""},
		"for EC2, with a form of STS":          {"ec2", "GET", "/?" + whoForm, "", "", "<Code>NoSuchVersion</Code>"},
		"for EC2, with an exchange":            {"ec2", "GET", "/?" + exchangeForm, "", "", "<Code>NoSuchVersion</Code>"},
		"for EC2, with STS's form in the body": {"ec2", "POST", "/", whoForm, "", "<Code>NoSuchVersion</Code>"},
		"for EC2, with an exchange inside":     {"ec2", "POST", "/", exchangeForm, "", "<Code>NoSuchVersion</Code>"},
		"for Auto Scaling, with EC2's form":    {"autoscaling", "GET", "/?Action=DescribeRegions&Version=2016-11-15", "", "", "<Code>InvalidAction</Code>"},
		"for STS, with EC2's form":             {"sts", "GET", "/?Action=DescribeRegions&Version=2016-11-15", "", "", "<Code>InvalidAction</Code>"},
		"for IAM, with a form of STS":          {"iam", "GET", "/?" + whoForm, "", "", "<Code>SignatureDoesNotMatch</Code>"},
		"for STS, with a form of IAM":          {"sts", "GET", "/?Action=GetAccountSummary&Version=2010-05-08", "", "", "<Code>InvalidAction</Code>"},
		"for EKS, a token":                     {"eks", "GET", "/?" + whoForm, "", "", "<Code>SignatureDoesNotMatch</Code>"},
		"for EKS, with an exchange inside":     {"eks", "GET", "/clusters?" + exchangeForm, "", "eks:ListClusters", ""},
		"for KMS, with a form of STS":          {"kms", "POST", "/", whoForm, "", "UnknownOperationException"},
		"STS's, with another form in the body": {"sts", "POST", "/?" + whoForm, "Action=GetAccountSummary&Version=2010-05-08", "", "<Code>MalformedQueryString</Code>"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRoutes(t)
			answer := w.send(t, c.signedFor, c.method, c.target, c.body, form)
			if got := strings.Join(w.done, " "); got != c.done || (answer.Code == http.StatusOK) != (c.done != "") || !strings.Contains(answer.Body.String(), c.has) {
				t.Errorf("done %q: %d %s", got, answer.Code, answer.Body)
			}
			if len(w.gate.unsigned) > 0 {
				t.Errorf("asked as unsigned: %v", w.gate.unsigned)
			}
		})
	}
}

// Of all kinds of actions, the one that is registered as unsigned is done without a signature.
func TestUnsignedRequestsOfEachKind(t *testing.T) {
	const json11 = "application/x-amz-json-1.1"
	for name, c := range map[string]struct {
		method, target, body, kind, amzTarget string
		done                                  string
	}{
		"a path":                    {"GET", "/clusters", "", "", "", ""},
		"EC2's form":                {"POST", "/", "Action=DescribeRegions&Version=2016-11-15", form, "", ""},
		"EC2's query":               {"GET", "/?Action=DescribeRegions&Version=2016-11-15", "", "", "", ""},
		"Auto Scaling's form":       {"POST", "/", "Action=DescribePolicies&Version=2011-01-01", form, "", ""},
		"a target":                  {"POST", "/", "{}", json11, "TrentService.ListKeys", ""},
		"IAM's form":                {"POST", "/", "Action=GetAccountSummary&Version=2010-05-08", form, "", ""},
		"STS's form":                {"POST", "/", whoForm, form, "", ""},
		"STS's query":               {"GET", "/?" + whoForm, "", "", "", ""},
		"an exchange":               {"POST", "/", exchangeForm, form, "", "sts:AssumeRoleWithWebIdentity"},
		"an exchange by GET":        {"GET", "/?" + exchangeForm, "", "", "", ""},
		"an exchange elsewhere":     {"POST", "/clusters", exchangeForm, form, "", ""},
		"an exchange of IAM":        {"POST", "/", strings.Replace(exchangeForm, "2011-06-15", "2010-05-08", 1), form, "", ""},
		"two actions":               {"POST", "/", exchangeForm + "&Action=GetCallerIdentity", form, "", ""},
		"two actions, one encoded":  {"POST", "/", exchangeForm + "&%41ction=GetCallerIdentity", form, "", ""},
		"an action in the query":    {"POST", "/?Action=GetCallerIdentity", exchangeForm, form, "", ""},
		"two versions":              {"POST", "/", exchangeForm + "&Version=2010-05-08", form, "", ""},
		"another action of letters": {"POST", "/", strings.Replace(exchangeForm, "Assume", "assume", 1), form, "", ""},
		"a page":                    {"GET", "/favicon.ico", "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRoutes(t)
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.target, strings.NewReader(c.body))
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			if c.amzTarget != "" {
				r.Header.Set("X-Amz-Target", c.amzTarget)
			}
			answer := httptest.NewRecorder()
			w.front.ServeHTTP(answer, r)
			if got := strings.Join(w.done, " "); got != c.done || (answer.Code == http.StatusOK) != (c.done != "") {
				t.Errorf("done %q: %d %s", got, answer.Code, answer.Body)
			}
			if len(w.gate.unsigned) > 0 && !slices.Equal(w.gate.unsigned, []string{c.done}) {
				t.Errorf("asked as unsigned: %v", w.gate.unsigned)
			}
		})
	}
}

// Both the registration and the gate must say that an action is unsigned.
func TestAnUnsignedActionTakesTwo(t *testing.T) {
	w := newRoutes(t)
	doing(w, "iam", "GetUser", Spec[struct{ UserName *string }, nothing]{Rights: Itself, Unsigned: true})
	answer := w.send(t, "", "POST", "/", "Action=GetUser&Version=2010-05-08", form)
	if answer.Code != http.StatusForbidden || len(w.done) > 0 || !slices.Equal(w.gate.unsigned, []string{"iam:GetUser"}) {
		t.Errorf("%d %s, done %v", answer.Code, answer.Body, w.done)
	}
	for what, spec := range map[string]Spec[nothing, nothing]{
		"an unsigned action that policies decide about": {Unsigned: true},
		"an unsigned action that everybody may do":      {Unsigned: true, Rights: Everybody},
		"an action that says what nobody asks about":    {Rights: Everybody, About: func(context.Context, *Call, *nothing) ([]Target, error) { return nil, nil }},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is registered", what)
				}
			}()
			Register(w.front, "sts", "GetSessionToken", spec)
		}()
	}
}

// The end of an action is called when the action is refused, too, and IAM is asked about the Caller that Begin has put
// into the Call.
func TestWhatBeginsEnds(t *testing.T) {
	w := newWorld(t)
	var begun, ended int
	Register(w.front, "eks", "DescribeNodegroup", Spec[struct{ ClusterName, NodegroupName string }, nothing]{
		Begin: func(_ context.Context, call *Call) (func(), error) {
			begun++
			call.Caller = caller{"its own"}
			return func() { ended++ }, nil
		},
		About: func(_ context.Context, call *Call, in *struct{ ClusterName, NodegroupName string }) ([]Target, error) {
			switch in.NodegroupName {
			case "panic":
				panic("the plate fell")
			case "unknown":
				return nil, awsfault.Errorf("ResourceNotFoundException", "no")
			}
			return []Target{{Resource: call.Caller.ARN().String(), Shown: "shown"}}, nil
		},
		Do: func(context.Context, *Call, *struct{ ClusterName, NodegroupName string }) (*nothing, error) {
			return nil, nil
		},
	})
	w.gate.may = func(_, resource string, _ map[string][]string) error {
		if !strings.HasSuffix(resource, "its own") {
			t.Errorf("asked about %s", resource)
		}
		return refusedBy("AccessDenied", "no")
	}
	for i, name := range []string{"panic", "unknown", "denied"} {
		answer := w.ask(t, "a", http.MethodGet, "/clusters/one/node-groups/"+name, "")
		if answer.Code == http.StatusOK || begun != i+1 || ended != begun {
			t.Errorf("%s: %d, begun %d, ended %d", name, answer.Code, begun, ended)
		}
	}
	w.gate.may = nil
	if answer := w.ask(t, "a", http.MethodGet, "/clusters/one/node-groups/fine", ""); answer.Code != http.StatusOK || ended != 4 {
		t.Errorf("%d, ended %d", answer.Code, ended)
	}
}
