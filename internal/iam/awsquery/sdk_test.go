// SPDX-License-Identifier: Apache-2.0

package awsquery_test

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

	"muster.dev/muster/internal/iam/awsquery"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

var moment = time.Date(2026, 11, 21, 14, 0, 0, 987654321, time.UTC)

const trusted = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

type tag struct{ Key, Value string }

type user struct {
	Path       string
	UserName   string
	UserID     string `xml:"UserId"`
	Arn        string
	CreateDate awsquery.Time
	Tags       awsquery.List[tag]
}

type role struct {
	RoleName                 string
	Arn                      string
	CreateDate               awsquery.Time
	AssumeRolePolicyDocument string
	MaxSessionDuration       int32
}

type caller struct {
	Arn     string
	UserID  string `xml:"UserId" json:"UserId"`
	Account string
}

type createUser struct {
	UserName string `query:",required"`
	Path     *string
	Tags     []tag
}

func admitAll(ctx context.Context, _ *http.Request, _ awsquery.Call) (context.Context, error) {
	return ctx, nil
}

// newServer has a few actions, and GetUser fails as the name of the user says.
func newServer(t *testing.T, admit awsquery.Admit) (*awsquery.Server, string, *createUser) {
	t.Helper()
	s := awsquery.New(awsquery.Config{Admit: admit, Now: func() time.Time { return moment }})
	got := &createUser{}
	awsquery.Register(s, awsquery.IAM(), "CreateUser", func(_ context.Context, _ awsquery.Call, in createUser) (*struct{ User user }, error) {
		*got = in
		u := user{UserName: in.UserName, Path: *in.Path, UserID: "AIDAX", Arn: "arn:x<&>", CreateDate: awsquery.Time{Time: moment}, Tags: awsquery.ListOf(in.Tags)}
		return &struct{ User user }{u}, nil
	})
	awsquery.Register(s, awsquery.IAM(), "GetUser", func(_ context.Context, _ awsquery.Call, in struct{ UserName string }) (*struct{ User user }, error) {
		switch in.UserName {
		case "panic":
			panic("a secret in a panic")
		case "plain":
			return nil, errors.New("a secret in an error")
		case "invalid":
			return nil, iam.CheckUserName("a/b")
		case "limit":
			return nil, iam.CheckNewKey(iam.User{}, 2)
		case "document":
			_, err := iampolicy.Parse(iampolicy.Managed, "{}")
			return nil, err
		case "large":
			_, err := iampolicy.Parse(iampolicy.Managed, strings.Repeat("x", 7000))
			return nil, err
		case "late":
			return nil, context.DeadlineExceeded
		}
		return nil, awsquery.Errorf(awsquery.Code(in.UserName), "because <of> this")
	})
	awsquery.Register(s, awsquery.IAM(), "DeleteUser", func(context.Context, awsquery.Call, struct{ UserName string }) (*struct{}, error) {
		return nil, nil
	})
	awsquery.Register(s, awsquery.IAM(), "ListRoles",
		func(_ context.Context, _ awsquery.Call, in struct {
			Marker   *string
			MaxItems *int32
		},
		) (*struct {
			awsquery.Page
			Roles awsquery.List[role]
		}, error,
		) {
			var all []role
			for _, name := range []string{"c", "a", "b"} {
				all = append(all, role{
					RoleName: name, Arn: "arn", CreateDate: awsquery.Time{Time: moment}, MaxSessionDuration: 3600,
					AssumeRolePolicyDocument: awsquery.EncodeDocument(trusted + " "),
				})
			}
			items, page, err := awsquery.PageOf(all, func(r role) string { return r.RoleName }, plain{}, in.Marker, in.MaxItems)
			return &struct {
				awsquery.Page
				Roles awsquery.List[role]
			}{page, awsquery.ListOf(items)}, err
		})
	awsquery.Register(s, awsquery.STS(), "GetCallerIdentity", func(context.Context, awsquery.Call, struct{}) (*caller, error) {
		return &caller{Arn: "arn:aws:iam::000000000000:user/alice", UserID: "AIDAX", Account: "000000000000"}, nil
	})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL, got
}

func iamClient(url string) *awsiam.Client {
	return awsiam.New(awsiam.Options{BaseEndpoint: &url, Region: "us-east-1", Credentials: static(), RetryMaxAttempts: 1})
}

func static() aws.CredentialsProviderFunc {
	return func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIAAAAAAAAAAAAAAAAA", SecretAccessKey: "x"}, nil
	}
}

func TestTheSDKReadsAnAnswer(t *testing.T) {
	_, url, got := newServer(t, admitAll)
	client := iamClient(url)
	out, err := client.CreateUser(t.Context(), &awsiam.CreateUserInput{
		UserName: aws.String("a+b @=&%"), Path: aws.String("/ä/"),
		Tags: []types.Tag{{Key: aws.String("k1"), Value: aws.String("")}, {Key: aws.String("k2"), Value: aws.String("v 2")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(createUser{UserName: "a+b @=&%", Path: aws.String("/ä/"), Tags: []tag{{"k1", ""}, {"k2", "v 2"}}}, *got); diff != "" {
		t.Error("the server read something else:", diff)
	}
	if u := out.User; *u.UserName != "a+b @=&%" || *u.Path != "/ä/" || *u.Arn != "arn:x<&>" || len(u.Tags) != 2 || *u.Tags[1].Value != "v 2" ||
		!u.CreateDate.Equal(moment.Truncate(time.Second)) {
		t.Errorf("the SDK read %+v", u)
	}
	if _, err := client.DeleteUser(t.Context(), &awsiam.DeleteUserInput{UserName: aws.String("x")}); err != nil {
		t.Error("an answer without a result:", err)
	}
}

func TestTheSDKPagesThroughAList(t *testing.T) {
	_, url, _ := newServer(t, admitAll)
	var names []string
	pages := 0
	for p := awsiam.NewListRolesPaginator(iamClient(url), &awsiam.ListRolesInput{MaxItems: aws.Int32(2)}); p.HasMorePages(); pages++ {
		page, err := p.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Roles {
			names = append(names, *r.RoleName)
			if *r.AssumeRolePolicyDocument != awsquery.EncodeDocument(trusted+" ") || strings.ContainsAny(*r.AssumeRolePolicyDocument, `+" `) {
				t.Error("the document is", *r.AssumeRolePolicyDocument)
			}
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" || pages != 2 {
		t.Error(pages, diff)
	}
}

func TestTheSDKReadsErrors(t *testing.T) {
	_, url, _ := newServer(t, admitAll)
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
			_, err := iamClient(url).GetUser(t.Context(), &awsiam.GetUserInput{UserName: &name})
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
	_, err := iamClient(url).GetUser(t.Context(), &awsiam.GetUserInput{UserName: aws.String("NoSuchEntity")})
	if typed := (*types.NoSuchEntityException)(nil); !errors.As(err, &typed) {
		t.Errorf("the SDK does not know the error for what it is: %v", err)
	}
}

func TestSTSAnswersInXMLAndJSON(t *testing.T) {
	_, url, _ := newServer(t, admitAll)
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

func TestNobodyIsAdmittedUnlessAdmitSaysSo(t *testing.T) {
	refuse := func(context.Context, *http.Request, awsquery.Call) (context.Context, error) {
		return nil, awsquery.Errorf(awsquery.MissingAuthenticationToken, "no")
	}
	for name, admit := range map[string]awsquery.Admit{"AccessDenied": nil, "MissingAuthenticationToken": refuse} {
		_, url, got := newServer(t, admit)
		_, err := iamClient(url).CreateUser(t.Context(), &awsiam.CreateUserInput{UserName: aws.String("a"), Path: aws.String("/")})
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != name || got.UserName != "" {
			t.Error(name, err, got)
		}
	}
}
