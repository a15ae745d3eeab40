// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

var wireMoment = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

const wireTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

// wireGate lets in everybody, or nobody.
type wireGate struct{ refuses error }

func (g wireGate) Admit(*http.Request, string, []byte) (awsfront.Caller, error) {
	return Caller{}, g.refuses
}

func (g wireGate) Unsigned(*http.Request, string, string) (awsfront.Caller, error) {
	return nil, errNotOurs
}

func (wireGate) Authorize(awsfront.Caller, string, awsfront.Target) error { return nil }

// plain are markers that anybody can make.
type plain struct{}

func (plain) Seal(last string) (string, error) { return "after " + last, nil }

func (plain) Open(marker string) (string, bool) {
	last, ok := strings.CutPrefix(marker, "after ")
	return last, ok && last != ""
}

// newWire has a few actions, and GetUser fails as the name of the user says.
func newWire(t *testing.T, gate awsfront.Gate) (url string, got *createUserIn) {
	t.Helper()
	front, err := awsfront.New(awsfront.Config{Gate: gate, Now: func() time.Time { return wireMoment }})
	if err != nil {
		t.Fatal(err)
	}
	got = &createUserIn{}
	awsfront.Register(front, apiIAM, "CreateUser", awsfront.Spec[createUserIn, userOut]{Rights: awsfront.Everybody, Do: func(_ context.Context, _ *awsfront.Call, in *createUserIn) (*userOut, error) {
		*got = *in
		return &userOut{userInfo{UserName: in.UserName, Path: *in.Path, UserId: "AIDAX", Arn: "arn:x<&>", CreateDate: wireMoment, Tags: &in.Tags}}, nil
	}})
	awsfront.Register(front, apiIAM, "GetUser", awsfront.Spec[userNameIn, userOut]{Rights: awsfront.Everybody, Do: func(_ context.Context, _ *awsfront.Call, in *userNameIn) (*userOut, error) {
		return nil, answerable(wireFailure(*in.UserName))
	}})
	awsfront.Register(front, apiIAM, "DeleteUser", awsfront.Spec[requiredUserIn, none]{Rights: awsfront.Everybody, Do: func(context.Context, *awsfront.Call, *requiredUserIn) (*none, error) { return nil, nil }})
	awsfront.Register(front, apiIAM, "ListRoles", awsfront.Spec[listIn, listRolesOut]{Rights: awsfront.Everybody, Do: func(_ context.Context, _ *awsfront.Call, in *listIn) (*listRolesOut, error) {
		var all []roleInfo
		for _, name := range []string{"c", "a", "b"} {
			all = append(all, roleInfo{RoleName: name, Arn: "arn", CreateDate: wireMoment, MaxSessionDuration: 3600, AssumeRolePolicyDocument: encodeDocument(wireTrust + " ")})
		}
		roles, page, err := pageBy(all, func(r roleInfo) string { return r.RoleName }, plain{}, in.Marker, in.MaxItems)
		return &listRolesOut{page, roles}, err
	}})
	awsfront.Register(front, apiSTS, "GetCallerIdentity", awsfront.Spec[none, callerIdentity]{Rights: awsfront.Everybody, Do: func(context.Context, *awsfront.Call, *none) (*callerIdentity, error) {
		return &callerIdentity{Arn: "arn:aws:iam::000000000000:user/alice", UserId: "AIDAX", Account: "000000000000"}, nil
	}})
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	return server.URL, got
}

func wireFailure(name string) error {
	switch name {
	case "panic":
		panic("a secret in a panic")
	case "plain":
		return errors.New("a secret in an error")
	case "invalid":
		return iam.CheckUserName("a/b")
	case "limit":
		return iam.CheckNewKey(iam.User{}, 2)
	case "document":
		_, err := iampolicy.Parse(iampolicy.Managed, "{}")
		return err
	case "large":
		_, err := iampolicy.Parse(iampolicy.Managed, strings.Repeat("x", 7000))
		return err
	case "late":
		return context.DeadlineExceeded
	}
	return iamfault.Errorf(iamfault.Code(name), "because <of> this")
}

func wireIAM(url string) *awsiam.Client {
	return awsiam.New(awsiam.Options{BaseEndpoint: &url, Region: "us-east-1", Credentials: static(), RetryMaxAttempts: 1})
}

func static() aws.CredentialsProviderFunc {
	return func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIAAAAAAAAAAAAAAAAA", SecretAccessKey: "x"}, nil
	}
}

func TestTheSDKReadsAnAnswer(t *testing.T) {
	url, got := newWire(t, wireGate{})
	client := wireIAM(url)
	out, err := client.CreateUser(t.Context(), &awsiam.CreateUserInput{
		UserName: aws.String("a+b @=&%"), Path: aws.String("/ä/"),
		Tags: []types.Tag{{Key: aws.String("k1"), Value: aws.String("")}, {Key: aws.String("k2"), Value: aws.String("v 2")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(createUserIn{UserName: "a+b @=&%", Path: aws.String("/ä/"), Tags: []tag{{"k1", ""}, {"k2", "v 2"}}}, *got); diff != "" {
		t.Error("the server read something else:", diff)
	}
	if u := out.User; *u.UserName != "a+b @=&%" || *u.Path != "/ä/" || *u.Arn != "arn:x<&>" || len(u.Tags) != 2 || *u.Tags[1].Value != "v 2" || !u.CreateDate.Equal(wireMoment) {
		t.Errorf("the SDK read %+v", u)
	}
	if _, err := client.DeleteUser(t.Context(), &awsiam.DeleteUserInput{UserName: aws.String("x")}); err != nil {
		t.Error("an answer without a result:", err)
	}
}

func TestTheSDKPagesThroughAList(t *testing.T) {
	url, _ := newWire(t, wireGate{})
	var names []string
	pages := 0
	for p := awsiam.NewListRolesPaginator(wireIAM(url), &awsiam.ListRolesInput{MaxItems: aws.Int32(2)}); p.HasMorePages(); pages++ {
		page, err := p.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Roles {
			names = append(names, *r.RoleName)
			if *r.AssumeRolePolicyDocument != encodeDocument(wireTrust+" ") || strings.ContainsAny(*r.AssumeRolePolicyDocument, `+" `) {
				t.Error("the document is", *r.AssumeRolePolicyDocument)
			}
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" || pages != 2 {
		t.Error(pages, diff)
	}
}

func TestTheSDKReadsErrors(t *testing.T) {
	url, _ := newWire(t, wireGate{})
	for name, want := range map[string]struct {
		code   string
		status int
	}{
		"NoSuchEntity": {"NoSuchEntity", 404}, "EntityAlreadyExists": {"EntityAlreadyExists", 409}, "LimitExceeded": {"LimitExceeded", 409},
		"MalformedPolicyDocument": {"MalformedPolicyDocument", 400}, "ValidationError": {"ValidationError", 400},
		"DeleteConflict": {"DeleteConflict", 409}, "AccessDenied": {"AccessDenied", 403}, "InvalidClientTokenId": {"InvalidClientTokenId", 403},
		"SignatureDoesNotMatch": {"SignatureDoesNotMatch", 403}, "ExpiredToken": {"ExpiredToken", 403},
		"ExpiredTokenException": {"ExpiredTokenException", 400}, "IncompleteSignature": {"IncompleteSignature", 400},
		"MissingAuthenticationToken": {"MissingAuthenticationToken", 403}, "Throttling": {"Throttling", 400},
		"ServiceUnavailable": {"ServiceUnavailable", 503}, "InternalFailure": {"InternalFailure", 500},
		"panic": {"InternalFailure", 500}, "plain": {"InternalFailure", 500}, "invalid": {"ValidationError", 400}, "limit": {"LimitExceeded", 409},
		"document": {"MalformedPolicyDocument", 400}, "large": {"LimitExceeded", 409}, "late": {"ServiceUnavailable", 503},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wireIAM(url).GetUser(t.Context(), &awsiam.GetUserInput{UserName: &name})
			var api smithy.APIError
			var answer *smithyhttp.ResponseError
			if !errors.As(err, &api) || !errors.As(err, &answer) || api.ErrorCode() != want.code || answer.HTTPStatusCode() != want.status {
				t.Fatal(err)
			}
			if strings.Contains(err.Error(), "secret in") {
				t.Error("the answer tells what only the log should:", err)
			}
			if name == want.code && api.ErrorMessage() != "because <of> this" {
				t.Error("the message is", api.ErrorMessage())
			}
			if (want.status >= 500) != (api.ErrorFault() == smithy.FaultServer) && api.ErrorFault() != smithy.FaultUnknown {
				t.Error("the fault is", api.ErrorFault())
			}
		})
	}
	_, err := wireIAM(url).GetUser(t.Context(), &awsiam.GetUserInput{UserName: aws.String("NoSuchEntity")})
	if typed := (*types.NoSuchEntityException)(nil); !errors.As(err, &typed) {
		t.Errorf("the SDK does not know the error for what it is: %v", err)
	}
}

func TestSTSAnswersInXMLAndJSON(t *testing.T) {
	url, _ := newWire(t, wireGate{})
	client := sts.New(sts.Options{BaseEndpoint: &url, Region: "us-east-1", Credentials: static()})
	out, err := client.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || *out.Arn != "arn:aws:iam::000000000000:user/alice" || *out.UserId != "AIDAX" || *out.Account != "000000000000" {
		t.Fatal(out, err)
	}
	signed, err := sts.NewPresignClient(client).PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string]string{
		"application/json": `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Arn":"arn:aws:iam::000000000000:user/alice","UserId":"AIDAX",` +
			`"Account":"000000000000"},"ResponseMetadata":{"RequestId":"ID"}}}`,
		"*/*": `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::000000000000:user/alice</Arn>` +
			`<UserId>AIDAX</UserId><Account>000000000000</Account></GetCallerIdentityResult><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></GetCallerIdentityResponse>`,
	} {
		request, err := http.NewRequestWithContext(t.Context(), signed.Method, signed.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		id := response.Header.Get("x-amzn-RequestId")
		if err != nil || id == "" || response.Header.Get("Date") != "Sat, 21 Nov 2026 14:00:00 GMT" || response.Header.Get("Cache-Control") != "no-store" {
			t.Error(err, response.Header)
		}
		if diff := cmp.Diff(want, strings.ReplaceAll(string(body), id, "ID")); diff != "" {
			t.Error(accept, diff)
		}
	}
}

func TestNobodyIsAdmittedUnlessTheGateSaysSo(t *testing.T) {
	if _, err := awsfront.New(awsfront.Config{}); err == nil {
		t.Error("a front without a gate is made")
	}
	url, got := newWire(t, wireGate{iamfault.Errorf(iamfault.MissingAuthenticationToken, "no")})
	_, err := wireIAM(url).CreateUser(t.Context(), &awsiam.CreateUserInput{UserName: aws.String("a"), Path: aws.String("/")})
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "MissingAuthenticationToken" || got.UserName != "" {
		t.Error(err, got)
	}
}
