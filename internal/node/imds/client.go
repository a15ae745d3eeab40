// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsimds "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// DefaultEndpoint is where EC2's service answers, and muster's.
const DefaultEndpoint = "http://" + Address

// Address is the link-local address of the service.
const Address = "169.254.169.254"

// ErrNotFound says that the service has nothing of that name, such as no user data.
var ErrNotFound = errors.New("the instance metadata service has no such thing")

// maxAnswer bounds what is read of one answer. User data is 16 KiB at most.
const maxAnswer = 64 << 10

// Client asks the service, as AWS's own programs do.
type Client struct{ sdk *awsimds.Client }

// NewClient makes a client; an empty endpoint is the one that every instance has. It takes no proxy and nothing else
// from the environment: the address has a meaning on the very machine only. Each call asks once, or twice if its token
// was refused.
func NewClient(endpoint string) *Client {
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	return &Client{sdk: awsimds.New(awsimds.Options{
		Endpoint:          endpoint,
		ClientEnableState: awsimds.ClientEnabled,
		EnableFallback:    aws.FalseTernary, // never version 1
		Retryer:           retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 2, 10*time.Millisecond }),
		HTTPClient: &http.Client{
			Timeout: 2 * time.Second,
			Transport: &http.Transport{
				DialContext:            (&net.Dialer{Timeout: time.Second}).DialContext,
				MaxResponseHeaderBytes: 16 << 10,
				MaxIdleConnsPerHost:    1,
				IdleConnTimeout:        5 * time.Second,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})}
}

// UserData is what the instance was launched with; ErrNotFound if it was launched without.
func (c *Client) UserData(ctx context.Context) ([]byte, error) {
	output, err := c.sdk.GetUserData(ctx, &awsimds.GetUserDataInput{})
	if err != nil {
		return nil, fmt.Errorf("asking for user data: %w", classify(err))
	}
	content, err := readAll(output.Content)
	if err != nil {
		return nil, fmt.Errorf("asking for user data: %w", err)
	}
	return content, nil
}

// Metadata is the text below latest/meta-data/.
func (c *Client) Metadata(ctx context.Context, path string) (string, error) {
	output, err := c.sdk.GetMetadata(ctx, &awsimds.GetMetadataInput{Path: path})
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w", path, classify(err))
	}
	content, err := readAll(output.Content)
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w", path, err)
	}
	return string(content), nil
}

// Identity is the machine's identity as the service tells it.
type Identity struct {
	ID, Type                 string
	Region, AvailabilityZone string
	// AvailabilityZoneID is what all accounts call the zone by; empty if the service does not say.
	AvailabilityZoneID string
	PrivateIP          netip.Addr
	// IPv6 is the first address that the first network interface has of that kind; it is not valid if there is none.
	IPv6           netip.Addr
	PrivateDNSName string
	// PodRange is the first range of addresses that is delegated to its first network interface; it is not valid if
	// there is none.
	PodRange netip.Prefix
	// ImageID is the image that the instance was launched from; empty if the service does not say.
	ImageID string
}

// Identity asks for the machine's identity.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	document, err := c.sdk.GetInstanceIdentityDocument(ctx, &awsimds.GetInstanceIdentityDocumentInput{})
	if err != nil {
		return Identity{}, fmt.Errorf("asking who this machine is: %w", classify(err))
	}
	address, err := netip.ParseAddr(document.PrivateIP)
	if err != nil {
		return Identity{}, fmt.Errorf("asking who this machine is: privateIp: %w", err)
	}
	name, err := c.Metadata(ctx, "local-hostname")
	if err != nil {
		return Identity{}, fmt.Errorf("asking who this machine is: %w", err)
	}
	if document.InstanceID == "" || name == "" {
		return Identity{}, errors.New("asking who this machine is: the answer lacks instanceId or local-hostname")
	}
	zoneID, err := c.Metadata(ctx, "placement/availability-zone-id")
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Identity{}, fmt.Errorf("asking who this machine is: %w", err)
	}
	ipv6, err := firstOf(ctx, c, "ipv6s", netip.ParseAddr)
	if err != nil {
		return Identity{}, fmt.Errorf("asking who this machine is: %w", err)
	}
	podRange, err := firstOf(ctx, c, leafPodRange, netip.ParsePrefix)
	if err != nil {
		return Identity{}, fmt.Errorf("asking who this machine is: %w", err)
	}
	return Identity{
		ID: document.InstanceID, Type: document.InstanceType, Region: document.Region, AvailabilityZone: document.AvailabilityZone,
		AvailabilityZoneID: zoneID,
		PrivateIP:          address, IPv6: ipv6, PrivateDNSName: name, PodRange: podRange, ImageID: document.ImageID,
	}, nil
}

// firstOf is the first line of what is told of the first network interface, such as the address that EKS's nodes take
// in clusters of IPv6 (amazon-eks-ami, nodeadm/internal/kubelet/config.go, getNodeIp); zero if nothing is.
func firstOf[T any](ctx context.Context, c *Client, leaf string, parse func(string) (T, error)) (T, error) {
	var none T
	mac, err := c.Metadata(ctx, "mac")
	if err != nil {
		return none, err
	}
	all, err := c.Metadata(ctx, "network/interfaces/macs/"+mac+"/"+leaf)
	if errors.Is(err, ErrNotFound) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	first, _, _ := strings.Cut(all, "\n")
	found, err := parse(strings.TrimSpace(first))
	if err != nil {
		return none, fmt.Errorf("%s: %w", leaf, err)
	}
	return found, nil
}

// Role is the name of the machine's role; ErrNotFound if it has none.
func (c *Client) Role(ctx context.Context) (string, error) {
	names, err := c.Metadata(ctx, "iam/security-credentials/")
	name, _, _ := strings.Cut(names, "\n")
	return strings.TrimSpace(name), err
}

func readAll(content io.ReadCloser) ([]byte, error) {
	defer func() { _ = content.Close() }()
	raw, err := io.ReadAll(io.LimitReader(content, maxAnswer+1))
	if err == nil && len(raw) > maxAnswer {
		err = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return raw, err
}

func classify(err error) error {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && response.HTTPStatusCode() == http.StatusNotFound {
		return ErrNotFound
	}
	return err
}

// patience is how long [FetchUserData] asks a service that does not answer, as long as a machine's network may take to
// come up.
const patience = time.Minute

// FetchUserData asks for the user data of this machine, again and again while there is no answer; an empty endpoint is
// the one that every instance has. ErrNotFound says that it was launched without any.
func FetchUserData(ctx context.Context, endpoint string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the instance metadata service does not answer"))
	defer cancel()
	client := NewClient(endpoint)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		content, err := client.UserData(ctx)
		if err == nil || errors.Is(err, ErrNotFound) {
			return content, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// RoleCredentials are the credentials of the machine's role; ErrNotFound if it has none.
func (c *Client) RoleCredentials(ctx context.Context) (aws.Credentials, error) {
	name, err := c.Role(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	text, err := c.Metadata(ctx, "iam/security-credentials/"+name)
	if err != nil {
		return aws.Credentials{}, err
	}
	var said struct {
		Code            string
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
		Expiration      time.Time
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil || said.Code != "Success" || said.AccessKeyID == "" || said.SecretAccessKey == "" || said.Token == "" {
		return aws.Credentials{}, fmt.Errorf("asking for the credentials of role %s: the answer has none", name)
	}
	return aws.Credentials{
		AccessKeyID: said.AccessKeyID, SecretAccessKey: said.SecretAccessKey, SessionToken: said.Token, Source: "instance metadata", CanExpire: true, Expires: said.Expiration,
	}, nil
}
