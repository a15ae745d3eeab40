// SPDX-License-Identifier: Apache-2.0

package ekstoken

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"muster.dev/muster/internal/iam/ststoken"
)

// Request says which cluster a token is for, and which principal's it is to be.
type Request struct {
	// Cluster is the name that the cluster's authenticator knows itself by.
	Cluster string
	// Region of the STS; that of the AWS configuration if empty.
	Region string
	// RoleARN is a role to assume first, with a SessionName, if one is given, and an ExternalID.
	RoleARN, SessionName, ExternalID string
	// ForwardSessionName takes the name of the present session for the role's.
	ForwardSessionName bool
	// Files are the AWS configuration instead of the usual files and environment.
	Files *Files
}

// Files are an AWS configuration.
type Files struct{ Config, Credentials string }

// Token is a token and its end.
type Token struct {
	text    string
	Expires time.Time
}

// Reveal is the token itself.
func (t Token) Reveal() string { return t.text }

// String hides the token.
func (t Token) String() string { return "(a token until " + t.Expires.UTC().Format(time.RFC3339) + ")" }

// GoString hides the token.
func (t Token) GoString() string { return t.String() }

// LogValue hides the token.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

const (
	// clusterHeader is signed, so that a token for one cluster is of no use at another.
	clusterHeader = "x-k8s-aws-id"
	// signedFor is what aws-iam-authenticator and the AWS CLI write. Authenticators count 15 minutes from the date all
	// the same.
	signedFor = "60"
	// lifetime is what they tell kubectl: a minute less than authenticators allow.
	lifetime = 14 * time.Minute
)

// Make makes a token.
func Make(ctx context.Context, r Request, now time.Time) (Token, error) {
	if strings.TrimSpace(r.Cluster) == "" {
		return Token{}, errors.New("a token is for one cluster: give its name")
	}
	config, err := r.config(ctx)
	if err != nil {
		return Token{}, err
	}
	return Sign(ctx, config, r.Cluster, now)
}

// Sign makes a token by an AWS configuration: its region, endpoint and credentials.
func Sign(ctx context.Context, config aws.Config, cluster string, now time.Time) (Token, error) {
	if config.Region == "" {
		return Token{}, errors.New("no region is known: give --region, or set AWS_REGION, or region in your AWS configuration")
	}
	credentials, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		return Token{}, fmt.Errorf("finding AWS credentials: %w", err)
	}
	presigner := sts.NewPresignClient(sts.NewFromConfig(config))
	presigned, err := presigner.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.Presigner = forCluster{to: o.Presigner, cluster: cluster, now: now}
	})
	if err != nil {
		return Token{}, fmt.Errorf("signing a token: %w", err)
	}
	if !strings.HasPrefix(presigned.URL, "https://") {
		return Token{}, errors.New("the endpoint of STS that is configured (AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL, endpoint_url) is not an https URL: no cluster takes a token that is signed for it")
	}
	t := Token{text: ststoken.Encode(presigned.URL), Expires: now.Add(lifetime)}
	if credentials.CanExpire && credentials.Expires.Before(t.Expires) {
		t.Expires = credentials.Expires
	}
	return t, nil
}

// forCluster adds what a token has and another signed request has not.
type forCluster struct {
	to      sts.HTTPPresignerV4
	cluster string
	now     time.Time
}

// PresignHTTP implements [tokenverify.HTTPPresignerV4].
func (f forCluster) PresignHTTP(
	ctx context.Context, credentials aws.Credentials, request *http.Request, payloadHash, service, region string, _ time.Time, options ...func(*v4.SignerOptions),
) (string, http.Header, error) {
	request.Header.Set(clusterHeader, f.cluster)
	query := request.URL.Query()
	query.Set("X-Amz-Expires", signedFor)
	request.URL.RawQuery = query.Encode()
	return f.to.PresignHTTP(ctx, credentials, request, payloadHash, service, region, f.now, options...)
}

// KeyID is the access key that a request's credentials have before any role is assumed. Another key is another caller.
func KeyID(ctx context.Context, r Request) (string, error) {
	config, err := r.base(ctx)
	if err != nil {
		return "", err
	}
	credentials, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		return "", fmt.Errorf("finding the access key of the AWS credentials: %w", err)
	}
	return credentials.AccessKeyID, nil
}

// base finds region, endpoint and credentials.
func (r Request) base(ctx context.Context) (aws.Config, error) {
	var options []func(*awsconfig.LoadOptions) error
	if r.Region != "" {
		options = append(options, awsconfig.WithRegion(r.Region))
	}
	if r.Files != nil {
		options = append(options, awsconfig.WithSharedConfigFiles([]string{r.Files.Config}), awsconfig.WithSharedCredentialsFiles([]string{r.Files.Credentials}))
	}
	config, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	return config, nil
}

// config is the base, with the role assumed if one is asked for.
func (r Request) config(ctx context.Context) (aws.Config, error) {
	config, err := r.base(ctx)
	if err != nil || r.RoleARN == "" {
		return config, err
	}
	if a, err := arn.Parse(r.RoleARN); err != nil || a.Service != "iam" || !strings.HasPrefix(a.Resource, "role/") {
		return aws.Config{}, fmt.Errorf("%q is not the ARN of a role: write one like arn:aws:iam::000000000000:role/developers", r.RoleARN)
	}
	client := sts.NewFromConfig(config)
	session := r.SessionName
	if r.ForwardSessionName {
		if session, err = currentSession(ctx, client); err != nil {
			return aws.Config{}, err
		}
	}
	config.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(client, r.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		if session != "" {
			o.RoleSessionName = session
		}
		if r.ExternalID != "" {
			o.ExternalID = &r.ExternalID
		}
	}))
	return config, nil
}

// currentSession asks for the caller's identity: arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION.
func currentSession(ctx context.Context, client *sts.Client) (string, error) {
	who, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf("asking STS for the name of the present session: %w", err)
	}
	parts := strings.Split(aws.ToString(who.Arn), "/")
	if len(parts) != 3 || !strings.HasSuffix(parts[0], ":assumed-role") {
		return "", fmt.Errorf("%s is not a session of a role, so there is no session name to forward", aws.ToString(who.Arn))
	}
	return parts[2], nil
}
