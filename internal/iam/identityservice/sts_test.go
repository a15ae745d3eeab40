// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/identityservice"
)

func TestGetCallerIdentity(t *testing.T) {
	w := newWorld(t, nil)
	got, err := w.sts(w.admin()).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	if *got.Arn != "arn:aws:iam::"+account+":user/admin" || *got.Account != account || *got.UserId != w.key.UserID {
		t.Errorf("%s %s %s", *got.Arn, *got.Account, *got.UserId)
	}
	id, _ := awsmiddleware.GetRequestIDMetadata(got.ResultMetadata)
	for _, want := range []string{"action=GetCallerIdentity", "outcome=ok", "principal=arn:aws:iam::000000000000:user/admin", "access_key_id=" + w.key.ID, "request_id=" + id + " "} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, w.log)
		}
	}
}

func TestPresignedGetCallerIdentityAsJSON(t *testing.T) {
	w := newWorld(t, nil)
	unsigned, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=60", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	presigned, _, err := v4.NewSigner().PresignHTTP(t.Context(), aws.Credentials{AccessKeyID: w.key.ID, SecretAccessKey: w.key.Secret.Reveal()}, unsigned,
		sigv4.EmptyPayload, "sts", region, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	get := func(url, accept string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	status, body := get(presigned, "application/json")
	var answer struct {
		GetCallerIdentityResponse struct {
			GetCallerIdentityResult struct{ Account, Arn, UserId string }
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatal(status, err, body)
	}
	if got := answer.GetCallerIdentityResponse.GetCallerIdentityResult; got.Account != account || got.UserId != w.key.UserID || got.Arn != "arn:aws:iam::"+account+":user/admin" {
		t.Errorf("%+v", got)
	}
	if status, body := get(presigned, "*/*"); status != http.StatusOK || !strings.Contains(body, "<Arn>arn:aws:iam::"+account+":user/admin</Arn>") {
		t.Error(status, body)
	}
	if status, body := get(presigned+"0", "*/*"); status == http.StatusOK {
		t.Error("a signature with another digit is taken", status, body)
	}
	w.move(16 * time.Minute)
	if status, body := get(presigned, "application/json"); status != http.StatusForbidden || !strings.Contains(body, "SignatureDoesNotMatch") || !strings.Contains(body, "Signature expired") {
		t.Error(status, body)
	}
}

func TestWhoIsNotAdmitted(t *testing.T) {
	w := newWorld(t, nil)
	alice := w.user("alice")
	aliceSession := session(must[*sts.GetSessionTokenOutput](w)(w.sts(alice).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})).Credentials)
	ask := func(s signer) error {
		_, err := w.sts(s).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		return err
	}
	w.wants("a user", ask(alice), "")
	w.wants("her session", ask(aliceSession), "")
	w.wants("a wrong secret", ask(signer{alice.id, alice.secret + "x", ""}), "SignatureDoesNotMatch")
	w.wants("an unknown key", ask(signer{"AKIAAAAAAAAAAAAAAAAA", "x", ""}), "InvalidClientTokenId")
	w.wants("a session without its token", ask(signer{aliceSession.id, aliceSession.secret, ""}), "InvalidClientTokenId")
	w.wants("a long-lived key with a token", ask(signer{alice.id, alice.secret, aliceSession.token}), "InvalidClientTokenId")
	w.wants("the token of another session", ask(signer{"ASIAAAAAAAAAAAAAAAAA", aliceSession.secret, aliceSession.token}), "InvalidClientTokenId")
	changed := []byte(aliceSession.token)
	changed[len(changed)/2] ^= 1
	w.wants("a token with another bit", ask(signer{aliceSession.id, aliceSession.secret, string(changed)}), "InvalidClientTokenId")

	w.move(-16 * time.Minute)
	w.wants("a clock that is ahead", ask(alice), "SignatureDoesNotMatch")
	w.move(2 * time.Minute)
	w.wants("a clock that is a little ahead", ask(alice), "")
	w.move(30 * time.Minute)
	w.wants("a clock that is behind", ask(alice), "SignatureDoesNotMatch")
	w.move(-16 * time.Minute)

	admin := w.iam(w.admin())
	inactive, active := iamtypes.StatusTypeInactive, iamtypes.StatusTypeActive
	set := func(status iamtypes.StatusType) {
		if _, err := admin.UpdateAccessKey(t.Context(), &iam.UpdateAccessKeyInput{UserName: aws.String("alice"), AccessKeyId: &alice.id, Status: status}); err != nil {
			t.Fatal(err)
		}
	}
	set(inactive)
	w.wants("an inactive key", ask(alice), "InvalidClientTokenId")
	w.wants("a session of an inactive key", ask(aliceSession), "InvalidClientTokenId")
	set(active)
	w.wants("a key that is active again", ask(alice), "")
	w.wants("a session of a key that is active again", ask(aliceSession), "")
	if _, err := admin.DeleteAccessKey(t.Context(), &iam.DeleteAccessKeyInput{UserName: aws.String("alice"), AccessKeyId: &alice.id}); err != nil {
		t.Fatal(err)
	}
	w.wants("a deleted key", ask(alice), "InvalidClientTokenId")
	w.wants("a session of a deleted key", ask(aliceSession), "InvalidClientTokenId")
	for _, secret := range []string{alice.secret, aliceSession.secret, aliceSession.token, w.key.Secret.Reveal()} {
		if strings.Contains(w.log.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

func TestUnsignedRequests(t *testing.T) {
	w := newWorld(t, nil)
	for body, want := range map[string]string{
		"Action=GetCallerIdentity&Version=2011-06-15":    "MissingAuthenticationToken",
		"Action=ListUsers&Version=2010-05-08":            "MissingAuthenticationToken",
		"Action=Nonsense&Version=2010-05-08":             "InvalidAction",
		"Action=GetCallerIdentity&Version=2010-05-08":    "InvalidAction",
		"Version=2011-06-15":                             "MissingAction",
		"Action=ListUsers&Action=x&Version=2010-05-08":   "InvalidQueryParameter",
		"Action=ListUsers&Version=2010-05-08&UserName=%": "MalformedQueryString",
		"Action=AssumeRoleWithSAML&Version=2011-06-15":   "MissingAuthenticationToken", // why it is refused is told to those who are known
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if !strings.Contains(string(answer), "<Code>"+want+"</Code>") {
			t.Errorf("%s: %s, want %s", body, answer, want)
		}
		if id := response.Header.Get("X-Amzn-Requestid"); id == "" || !strings.Contains(w.log.String(), "request_id="+id) {
			t.Errorf("%s: the log does not have the request %q:\n%s", body, id, w.log)
		}
	}
	if got := strings.Count(w.log.String(), "identity request"); got != 8 {
		t.Errorf("%d lines for 8 requests:\n%s", got, w.log)
	}
}

func TestAssumeRole(t *testing.T) {
	w := newWorld(t, nil)
	alice, bob := w.user("alice"), w.user("bob")
	w.role("app", trusting("AWS", "arn:aws:iam::"+account+":user/alice"))
	w.role("open", trusting("AWS", account))
	w.role("external", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::`+account+`:user/alice"},"Action":"sts:AssumeRole","Condition":{"StringEquals":{"sts:ExternalId":"secret"}}}]}`)
	w.role("next", trusting("AWS", *roleARN("app")))
	assume := func(s signer, role, name string, change func(*sts.AssumeRoleInput)) (*sts.AssumeRoleOutput, error) {
		in := &sts.AssumeRoleInput{RoleArn: roleARN(role), RoleSessionName: &name}
		if change != nil {
			change(in)
		}
		return w.sts(s).AssumeRole(t.Context(), in)
	}
	got, err := assume(alice, "app", "work", nil)
	if err != nil {
		t.Fatal(err)
	}
	if *got.AssumedRoleUser.Arn != "arn:aws:sts::"+account+":assumed-role/app/work" || !strings.HasSuffix(*got.AssumedRoleUser.AssumedRoleId, ":work") {
		t.Errorf("%+v", *got.AssumedRoleUser)
	}
	who, err := w.sts(session(got.Credentials)).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || *who.Arn != *got.AssumedRoleUser.Arn || *who.UserId != *got.AssumedRoleUser.AssumedRoleId {
		t.Errorf("%+v, %v", who, err)
	}

	_, err = assume(bob, "app", "work", nil)
	w.wants("who is not trusted", err, "AccessDenied")
	_, err = assume(alice, "none", "work", nil)
	w.wants("a role that is not there", err, "AccessDenied")
	_, err = assume(alice, "open", "work", nil)
	w.wants("a role that trusts the account, without a policy", err, "AccessDenied")
	_, err = assume(w.admin(), "open", "work", nil)
	w.wants("a role that trusts the account, with a policy", err, "")
	_, err = assume(alice, "external", "work", nil)
	w.wants("without the external id", err, "AccessDenied")
	_, err = assume(alice, "external", "work", func(in *sts.AssumeRoleInput) { in.ExternalId = aws.String("secret") })
	w.wants("with the external id", err, "")
	_, err = assume(alice, "app", "w", nil)
	w.wants("a short session name", err, "ValidationError")
	_, err = assume(alice, "app", "i-0123456789abcdef0", nil)
	w.wants("a session name like an instance's", err, "ValidationError")
	for seconds, want := range map[int32]string{900: "", 3600: "", 3601: "ValidationError", 899: "ValidationError"} {
		_, err = assume(alice, "app", "work", func(in *sts.AssumeRoleInput) { in.DurationSeconds = &seconds })
		w.wants("a session of some seconds", err, want)
	}
	_, err = assume(alice, "app", "work", func(in *sts.AssumeRoleInput) {
		in.Tags = []ststypes.Tag{{Key: aws.String("a"), Value: aws.String("b")}}
	})
	w.wants("session tags that the trust policy does not allow", err, "AccessDenied")
	_, err = assume(alice, "app", "work", func(in *sts.AssumeRoleInput) { in.SourceIdentity = aws.String("alice") })
	w.wants("a source identity", err, "ValidationError")

	// A chain lasts for an hour at most, whatever the role allows.
	if _, err := w.iam(w.admin()).UpdateRole(t.Context(), &iam.UpdateRoleInput{RoleName: aws.String("next"), MaxSessionDuration: aws.Int32(7200)}); err != nil {
		t.Fatal(err)
	}
	_, err = assume(session(got.Credentials), "next", "chain", func(in *sts.AssumeRoleInput) { in.DurationSeconds = aws.Int32(7200) })
	w.wants("two hours in a chain", err, "ValidationError")
	own, err := w.sts(alice).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})
	w.wants("a session of a user", err, "")
	if _, err := w.iam(w.admin()).UpdateRole(t.Context(), &iam.UpdateRoleInput{RoleName: aws.String("app"), MaxSessionDuration: aws.Int32(7200)}); err != nil {
		t.Fatal(err)
	}
	_, err = assume(alice, "app", "work", func(in *sts.AssumeRoleInput) { in.DurationSeconds = aws.Int32(7200) })
	w.wants("two hours with a user's key", err, "")
	_, err = assume(session(own.Credentials), "app", "work", func(in *sts.AssumeRoleInput) { in.DurationSeconds = aws.Int32(7200) })
	w.wants("two hours with a user's session", err, "ValidationError")
	_, err = assume(session(own.Credentials), "app", "work", nil)
	w.wants("an hour with a user's session", err, "")
	chained, err := assume(session(got.Credentials), "next", "chain", nil)
	w.wants("an hour in a chain", err, "")
	_, err = assume(bob, "next", "chain", nil)
	w.wants("the second role directly", err, "AccessDenied")

	// Whatever a session hangs on ends it.
	ask := func(s signer) error {
		_, err := w.sts(s).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		return err
	}
	w.wants("the chain", ask(session(chained.Credentials)), "")
	if _, err := w.iam(w.admin()).DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("app")}); err != nil {
		t.Fatal(err)
	}
	w.wants("a session of a deleted role", ask(session(got.Credentials)), "InvalidClientTokenId")
	w.role("app", trusting("AWS", "arn:aws:iam::"+account+":user/alice"))
	w.wants("a session of a role that was made again", ask(session(got.Credentials)), "InvalidClientTokenId")
	_, err = assume(session(must[*sts.AssumeRoleOutput](w)(assume(alice, "app", "work", nil)).Credentials), "next", "chain", nil)
	w.wants("a new role of the name that was trusted", err, "AccessDenied")
}

func TestASessionEnds(t *testing.T) {
	w := newWorld(t, nil)
	got := must[*sts.GetSessionTokenOutput](w)(w.sts(w.admin()).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{DurationSeconds: aws.Int32(900)}))
	s := session(got.Credentials)
	_, err := w.iam(s).ListUsers(t.Context(), &iam.ListUsersInput{})
	w.wants("IAM with a session token", err, "AccessDenied")
	_, err = w.sts(s).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})
	w.wants("a session token with a session token", err, "AccessDenied")
	_, err = w.sts(w.admin()).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{DurationSeconds: aws.Int32(60)})
	w.wants("a short session", err, "ValidationError")
	w.move(14*time.Minute + 30*time.Second)
	_, err = w.sts(s).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	w.wants("near its end", err, "")
	w.move(31 * time.Second)
	_, err = w.sts(s).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	w.wants("after its end", err, "ExpiredToken")
}

func TestSessionPolicyNarrows(t *testing.T) {
	w := newWorld(t, nil)
	w.role("power", trusting("AWS", account))
	_, err := w.iam(w.admin()).AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: aws.String("power"), PolicyArn: aws.String("arn:aws:iam::aws:policy/AdministratorAccess")})
	w.wants("attaching", err, "")
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:List*","Resource":"*"}]}`
	got, err := w.sts(w.admin()).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN("power"), RoleSessionName: aws.String("narrow"), Policy: &policy})
	if err != nil {
		t.Fatal(err)
	}
	if got.SessionTokenUtilization == nil || *got.SessionTokenUtilization <= 0 || *got.SessionTokenUtilization > 100 || int(*got.SessionTokenSize) != len(*got.Credentials.SessionToken) {
		t.Errorf("the token takes %v percent, %v bytes", got.SessionTokenUtilization, got.SessionTokenSize)
	}
	_, err = w.iam(session(got.Credentials)).ListUsers(t.Context(), &iam.ListUsersInput{})
	w.wants("what both allow", err, "")
	_, err = w.iam(session(got.Credentials)).CreateUser(t.Context(), &iam.CreateUserInput{UserName: aws.String("eve")})
	w.wants("what the session policy does not allow", err, "AccessDenied")
	long := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:List*","Resource":"arn:aws:iam::000000000000:user/` + strings.Repeat("x", 1500) + `"}]}`
	_, err = w.sts(w.admin()).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN("power"), RoleSessionName: aws.String("narrow"), Policy: &long})
	w.wants("a policy that does not fit", err, "PackedPolicyTooLarge")
	bad := `{`
	_, err = w.sts(w.admin()).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN("power"), RoleSessionName: aws.String("narrow"), Policy: &bad})
	w.wants("a policy that is none", err, "MalformedPolicyDocument")
}

func TestOneKeyIsLimitedAndOthersAreNot(t *testing.T) {
	w := newWorld(t, func(c *identityservice.Config) { c.Rate, c.Burst = 1, 3 })
	ask := func(s signer) string {
		_, err := w.sts(s).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		return code(err)
	}
	alice := w.user("alice") // takes two of the administrator's three
	if got := ask(w.admin()); got != "" {
		t.Error(got)
	}
	w.wants("the fourth at once", func() error {
		_, err := w.sts(w.admin()).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		return err
	}(), "Throttling")
	for range 5 {
		if got := ask(signer{alice.id, "wrong", ""}); got != "SignatureDoesNotMatch" {
			t.Error(got)
		}
	}
	if got := ask(alice); got != "" {
		t.Errorf("somebody else spent her requests: %s", got)
	}
}

// A signature for one service, region or action is none for another.
func TestASignatureIsForOneService(t *testing.T) {
	w := newWorld(t, nil)
	ask := func(body, service, region string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		sum := sha256.Sum256([]byte(body))
		err = v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: w.key.ID, SecretAccessKey: w.key.Secret.Reveal()}, request,
			hex.EncodeToString(sum[:]), service, region, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(answer), "<Code>")
		code, _, _ := strings.Cut(rest, "</Code>")
		return code
	}
	const list, who = "Action=ListUsers&Version=2010-05-08", "Action=GetCallerIdentity&Version=2011-06-15"
	w.says("IAM signed for IAM", ask(list, "iam", "us-east-1"), "")
	w.says("STS signed for STS", ask(who, "sts", "eu-west-1"), "")
	w.says("STS signed as a global service", ask(who, "sts", "us-east-1"), "")
	w.says("STS signed for another region", ask(who, "sts", "eu-west-2"), "SignatureDoesNotMatch")
	w.says("IAM signed for another region", ask(list, "iam", "eu-west-2"), "SignatureDoesNotMatch")
	w.says("IAM signed for STS", ask(list, "sts", "us-east-1"), "SignatureDoesNotMatch")
	w.says("STS signed for EKS", ask(who, "eks", "us-east-1"), "SignatureDoesNotMatch")
	w.says("a region that is none", ask(who, "sts", "US EAST"), "Signature")
}
