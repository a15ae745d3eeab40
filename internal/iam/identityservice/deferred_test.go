// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/iam/identityservice"
)

const stacks = "cloudformation.amazonaws.com"

// deferred is what a service keeps of a signer, as it is written.
func (w *world) deferred(s signer) []byte {
	w.t.Helper()
	var kept []byte
	w.others["zoo"] = http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.t.Error(err)
		}
		caller, err := w.service.Admit(r, "zoo", body)
		if err != nil {
			w.t.Error(err)
			return
		}
		d, err := identityservice.Defer(w.service, caller)
		if err != nil {
			w.t.Error(err)
		}
		if kept, err = json.Marshal(d); err != nil {
			w.t.Error(err)
		}
	})
	w.ask(s, "zoo", region, "/", "", time.Now(), nil)
	if strings.Contains(string(kept), s.secret) {
		w.t.Errorf("what is kept has the secret: %s", kept)
	}
	return kept
}

// later lists the users for whom something was kept of, via a service or with a role of its own.
func (w *world) later(kept []byte, via string) error {
	w.t.Helper()
	var d identityservice.Deferred
	if err := json.Unmarshal(kept, &d); err != nil {
		w.t.Fatal(err)
	}
	caller, err := identityservice.Resume(w.service, d)
	if err != nil {
		return err
	}
	_, err = w.front.Do(w.t.Context(), awsfront.Inside{Caller: caller, Via: via, Service: "iam", Action: "ListUsers", Input: awsshape.Object{}})
	return err
}

// A service acts for a caller with the rights that the caller has at that moment, and not at all once the credentials have
// ended.
func TestDeferredCallers(t *testing.T) {
	w := newWorld(t, nil)
	ctx, admin := t.Context(), w.iam(w.admin())
	alice := w.user("alice")
	put := func(condition string) {
		t.Helper()
		if _, err := admin.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: aws.String(
			`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:ListUsers","Resource":"*"` + condition + `}}`)}); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(what string, err error, want string) {
		t.Helper()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	kept := w.deferred(alice)
	wants("without rights", w.later(kept, stacks), "not authorized to perform: iam:ListUsers")
	put("")
	wants("with rights", w.later(kept, stacks), "")
	put(`,"Condition":{"ForAnyValue:StringEquals":{"aws:CalledVia":"` + stacks + `"}}`)
	wants("via the service", w.later(kept, stacks), "")
	wants("via another", w.later(kept, "other.amazonaws.com"), "not authorized")
	wants("via none", w.later(kept, ""), "not authorized")
	_, err := w.iam(alice).ListUsers(ctx, &iam.ListUsersInput{})
	w.wants("by herself", err, "AccessDenied")
	put(`,"Condition":{"Bool":{"aws:ViaAWSService":"true"},"StringEquals":{"aws:CalledViaFirst":"` + stacks + `"}}`)
	wants("via a service", w.later(kept, stacks), "")
	wants("via no service", w.later(kept, ""), "not authorized")

	if _, err := admin.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{UserName: aws.String("alice"), AccessKeyId: &alice.id, Status: iamtypes.StatusTypeInactive}); err != nil {
		t.Fatal(err)
	}
	wants("with an inactive key", w.later(kept, stacks), "The security token included in the request is invalid")
}

func TestDeferredSessions(t *testing.T) {
	w := newWorld(t, nil)
	ctx, admin := t.Context(), w.iam(w.admin())
	w.role("deploy", trusting("AWS", account))
	must[*iam.AttachRolePolicyOutput](w)(admin.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: aws.String("deploy"), PolicyArn: aws.String("arn:aws:iam::aws:policy/AdministratorAccess")}))
	assumed := must[*sts.AssumeRoleOutput](w)(w.sts(w.admin()).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: roleARN("deploy"), RoleSessionName: aws.String("ci"), DurationSeconds: aws.Int32(900)}))
	kept := w.deferred(session(assumed.Credentials))
	if err := w.later(kept, stacks); err != nil {
		t.Error(err)
	}
	w.move(16 * time.Minute)
	if err := w.later(kept, stacks); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a session that has ended: %v", err)
	}
	forged := strings.Replace(string(kept), `"keyID":"ASIA`, `"keyID":"ASIB`, 1)
	if err := w.later([]byte(forged), stacks); err == nil {
		t.Error("a token is taken for another key")
	}
}

// A service with a role of its own does what the role may, as long as the role lets the service in.
func TestServicesWithRoles(t *testing.T) {
	w := newWorld(t, nil)
	ctx, admin := t.Context(), w.iam(w.admin())
	w.role("stacks", trusting("Service", stacks))
	in := identityservice.RoleOfService{Role: *roleARN("stacks"), Service: stacks, Source: "arn:aws:cloudformation:" + region + ":" + account + ":stack/s/1"}
	caller, err := identityservice.ServiceCaller(w.service, in)
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		caller, err := identityservice.ServiceCaller(w.service, in)
		if err != nil {
			return err
		}
		_, err = w.front.Do(ctx, awsfront.Inside{Caller: caller, Service: "iam", Action: "ListUsers", Input: awsshape.Object{}})
		return err
	}
	if err := list(); err == nil || !strings.Contains(err.Error(), "assumed-role/stacks/cloudformation is not authorized to perform: iam:ListUsers") {
		t.Errorf("without rights: %v", err)
	}
	must[*iam.AttachRolePolicyOutput](w)(admin.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: aws.String("stacks"), PolicyArn: aws.String("arn:aws:iam::aws:policy/AdministratorAccess")}))
	if err := list(); err != nil {
		t.Error(err)
	}
	// A change finds the caller anew before it is done.
	got, err := w.front.Do(ctx, awsfront.Inside{Caller: caller, Service: "iam", Action: "CreateUser", Input: awsshape.Object{"UserName": "made"}})
	if user, _ := got["User"].(awsshape.Object); err != nil || user["UserName"] != "made" {
		t.Errorf("a change: %v, %v", got, err)
	}
	if _, err := identityservice.Defer(w.service, caller); err == nil {
		t.Error("the session of a service is kept as a caller's")
	}
	must[*iam.UpdateAssumeRolePolicyOutput](w)(admin.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("stacks"), PolicyDocument: aws.String(trusting("Service", "ec2.amazonaws.com"))}))
	if _, err := w.front.Do(ctx, awsfront.Inside{Caller: caller, Service: "iam", Action: "CreateUser", Input: awsshape.Object{"UserName": "more"}}); err == nil {
		t.Error("a change by a role that does not let the service in any more")
	}
	if _, err := identityservice.ServiceCaller(w.service, in); err == nil || !strings.Contains(err.Error(), "does not let "+stacks+" do sts:AssumeRole") {
		t.Errorf("the role does not let the service in: %v", err)
	}
}
