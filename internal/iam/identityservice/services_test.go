// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/identityservice"
)

// zoo is a service of the account beside STS and IAM. It tells who asks, and decides about the resource "cage" of type
// big.
func zoo(w *world) {
	w.others["zoo"] = http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.t.Error(err)
		}
		caller, err := w.service.Admit(r, "zoo", body)
		if err == nil {
			err = w.service.Authorize(caller, "zoo:Feed", awsfront.Target{Resource: "arn:aws:zoo:" + region + ":" + account + ":cage/one", Conditions: map[string][]string{"zoo:size": {"big"}}, Policy: r.Header.Get("Policy-Of-The-Cage")})
		}
		if known, ok := errors.AsType[*awsfault.Error](err); ok {
			answer.WriteHeader(known.HTTPStatus())
			_, _ = fmt.Fprint(answer, known.Error())
			return
		}
		_, _ = fmt.Fprint(answer, caller.ARN(), " ", caller.Principal(), " ", caller.Account())
	})
}

// ask sends a signed request with a body, which change may change after it was signed.
func (w *world) ask(s signer, service, in, path, body string, at time.Time, change func(*http.Request)) (status int, told string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(body))
	credentials := aws.Credentials{AccessKeyID: s.id, SecretAccessKey: s.secret, SessionToken: s.token}
	if err := v4.NewSigner().SignHTTP(w.t.Context(), credentials, request, hex.EncodeToString(sum[:]), service, in, at); err != nil {
		w.t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

func TestOtherServicesOfTheAccountKnowWhoAsks(t *testing.T) {
	w := newWorld(t, nil)
	zoo(w)
	keeper := w.user("keeper")
	visitor := w.user("visitor")
	allow := func(document string) {
		t.Helper()
		if _, err := w.iam(w.admin()).PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{
			UserName: aws.String("keeper"), PolicyName: aws.String("feeds"), PolicyDocument: &document,
		}); err != nil {
			t.Fatal(err)
		}
	}
	allow(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"zoo:F*","Resource":"arn:aws:zoo:*:*:cage/*","Condition":{"StringEquals":{"zoo:Size":"big"}}}]}`)
	w.role("ape", trusting("Service", "ec2.amazonaws.com"))
	admin := w.iam(w.admin())
	must[*iam.CreateInstanceProfileOutput](w)(admin.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("ape")}))
	must[*iam.AddRoleToInstanceProfileOutput](w)(admin.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: aws.String("ape"), RoleName: aws.String("ape"),
	}))
	must[*iam.AttachRolePolicyOutput](w)(admin.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{
		RoleName: aws.String("ape"), PolicyArn: aws.String("arn:aws:iam::aws:policy/AdministratorAccess"),
	}))
	w.instances.set("i-1", instance{"ape", "ip-1.internal", demo})
	machine, err := w.service.RoleCredentials(t.Context(), "i-1")
	if err != nil {
		t.Fatal(err)
	}
	stranger := keeper
	stranger.id = "AKIAABCDEFGHIJKLMNOP"

	const keeperARN = "arn:aws:iam::000000000000:user/keeper"
	now := time.Now()
	for name, c := range map[string]struct {
		signer
		region, body string
		at           time.Time
		change       func(*http.Request)
		status       int
		told         string
	}{
		"may":                       {signer: keeper, body: `{"hay":1}`, status: 200, told: keeperARN + " " + keeperARN + " 000000000000"},
		"a machine's session":       {signer: signer{machine.AccessKeyID, machine.SecretAccessKey, machine.SessionToken}, status: 200, told: "arn:aws:sts::000000000000:assumed-role/ape/i-1 arn:aws:iam::000000000000:role/ape 000000000000"},
		"may not":                   {signer: visitor, status: 403, told: "AccessDenied: User: arn:aws:iam::000000000000:user/visitor is not authorized to perform: zoo:Feed on resource: arn:aws:zoo:eu-west-1:000000000000:cage/one because no identity-based policy allows the zoo:Feed action"},
		"an unknown key":            {signer: stranger, status: 403, told: "InvalidClientTokenId"},
		"another region":            {signer: keeper, region: "us-east-1", status: 403, told: "Credential should be scoped to a valid region, not 'us-east-1'"},
		"an old signature":          {signer: keeper, at: now.Add(-16 * time.Minute), status: 403, told: "SignatureDoesNotMatch: Signature expired"},
		"a signature of the future": {signer: keeper, at: now.Add(16 * time.Minute), status: 403, told: "SignatureDoesNotMatch: Signature not yet current"},
		"another body":              {signer: keeper, body: "{}", change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("[]")) }, status: 403, told: "SignatureDoesNotMatch"},
		"another path":              {signer: keeper, change: func(r *http.Request) { r.URL.Path = "/b" }, status: 403, told: "SignatureDoesNotMatch"},
		"a path that is escaped":    {signer: keeper, change: nil, status: 200, told: "user/keeper"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.region == "" {
				c.region = region
			}
			if c.at.IsZero() {
				c.at = now
			}
			path := "/a"
			if name == "a path that is escaped" {
				path = "/tags/arn%3Aaws%3Aeks%2Fx%20y"
			}
			status, told := w.ask(c.signer, "zoo", c.region, path, c.body, c.at, c.change)
			if status != c.status || !strings.Contains(told, c.told) {
				t.Errorf("%d %s, want %d %s", status, told, c.status, c.told)
			}
		})
	}
	if _, told := w.ask(keeper, "circus", region, "/a", "", now, nil); !strings.Contains(told, "UnknownOperationException") {
		t.Errorf("a service that is not here: %s", told)
	}
	// Rights are asked anew for each request.
	allow(`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"zoo:Feed","Resource":"*"}]}`)
	if status, told := w.ask(keeper, "zoo", region, "/a", "", now, nil); status != 403 || !strings.Contains(told, "explicit deny") {
		t.Errorf("once it is denied: %d %s", status, told)
	}
}

func TestASignatureIsGoodForItsServiceAlone(t *testing.T) {
	w := newWorld(t, nil)
	w.others["circus"] = http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		_, err := w.service.Admit(r, "zoo", nil) // of a handler that is wrong about what it serves
		_, _ = fmt.Fprint(answer, err)
	})
	if _, told := w.ask(w.admin(), "circus", region, "/", "", time.Now(), nil); !strings.Contains(told, "Credential should be scoped to correct service: 'zoo'") {
		t.Error(told)
	}
}

// AWS has its price list in three regions, and clients sign for one of them wherever they are.
func TestThePriceListIsSignedForOneOfItsRegions(t *testing.T) {
	w := newWorld(t, nil)
	for _, service := range []string{"pricing", "zoo"} {
		w.others[service] = http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
			_, err := w.service.Admit(r, service, nil)
			_, _ = fmt.Fprint(answer, err)
		})
	}
	for _, c := range []struct{ service, region, told string }{
		{"pricing", "us-east-1", "<nil>"},
		{"pricing", "eu-central-1", "<nil>"},
		{"pricing", region, "<nil>"},
		{"pricing", "eu-west-2", "Credential should be scoped to a valid region, not 'eu-west-2'"},
		{"zoo", "eu-central-1", "Credential should be scoped to a valid region"},
	} {
		if _, told := w.ask(w.admin(), c.service, c.region, "/", "", time.Now(), nil); !strings.Contains(told, c.told) {
			t.Errorf("%s signed for %s: %s, want %s", c.service, c.region, told, c.told)
		}
	}
}

// The log has one line for each request, with the caller that the gate found.
func TestTheLogSaysWhoAsked(t *testing.T) {
	w := newWorld(t, nil)
	type in struct{}
	type out struct{}
	awsfront.Register(w.front, "eks", "CreateCluster", awsfront.Spec[in, out]{Do: func(context.Context, *awsfront.Call, *in) (*out, error) { return nil, nil }})
	visitor := w.user("visitor")
	w.ask(visitor, "eks", region, "/clusters", "{}", time.Now(), nil)
	for _, want := range []string{
		`msg="aws request" api=eks action=CreateCluster outcome=InvalidParameterException principal=arn:aws:iam::000000000000:user/visitor access_key_id=` + visitor.id,
		`msg="identity request" api=iam action=CreateUser outcome=ok principal=arn:aws:iam::000000000000:user/admin access_key_id=` + w.key.ID + " resource=arn:aws:iam::000000000000:user/visitor",
	} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, w.log)
		}
	}
}

// The policy of a resource allows and denies beside the caller's own policies. A user who is made again under an old name
// is not the one who was meant.
func TestAResourceHasAPolicyOfItsOwn(t *testing.T) {
	w := newWorld(t, nil)
	zoo(w)
	visitor, admin := w.user("visitor"), w.admin()
	policy := func(effect, principal string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"` + effect + `","Action":"zoo:Feed","Resource":"arn:aws:zoo:*:*:cage/one","Principal":` + principal + `}]}`
	}
	const byName = `{"AWS":"arn:aws:iam::000000000000:user/visitor"}`
	bound, err := identityservice.BindPolicy(w.service, policy("Allow", byName))
	if err != nil || strings.Contains(bound, "user/visitor") {
		t.Fatalf("bound: %s, %v", bound, err)
	}
	if shown := identityservice.ShowPolicy(w.service, bound); !strings.Contains(shown, "user/visitor") {
		t.Errorf("shown: %s", shown)
	}
	for _, text := range []string{"{}", policy("Allow", `{"AWS":"arn:aws:iam::000000000000:user/nobody"}`)} {
		if _, err := identityservice.BindPolicy(w.service, text); err == nil {
			t.Errorf("%s is bound", text)
		}
	}
	feeds := func(who signer, policy string, status int, says string) {
		t.Helper()
		got, told := w.ask(who, "zoo", region, "/a", "", time.Now(), func(r *http.Request) { r.Header.Set("Policy-Of-The-Cage", policy) })
		if got != status || !strings.Contains(told, says) {
			t.Errorf("%s: %d %s, want %d %s", policy, got, told, status, says)
		}
	}
	feeds(visitor, "", 403, "no identity-based policy")
	feeds(visitor, bound, 200, "user/visitor")
	feeds(visitor, policy("Allow", `{"Service":"events.amazonaws.com"}`), 403, "AccessDenied")
	feeds(visitor, policy("Deny", `"*"`), 403, "explicit deny in a resource-based policy")
	feeds(admin, bound, 200, "")
	feeds(admin, policy("Deny", `"*"`), 403, "explicit deny in a resource-based policy")
	feeds(admin, "{", 403, "cannot be read")
}
