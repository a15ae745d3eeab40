// SPDX-License-Identifier: Apache-2.0

// Package eksclient asks the EKS API of a running account for upgrades and Fargate profiles, as the account's first user.
// `muster upgrade` and `muster create fargateprofile` ask by it, so that a command has the rules of the API, and is refused in the API's words.
//
// The address, the authority and the keys are those of two files of the account. The environment of AWS's tools does
// not count: it may be about another account, or about AWS.
//
// What happens if
//
//	the account refuses                  an [Error] with EKS's name for it
//	nothing answers at its address       an error that names the address
//	a file is missing, or has no keys    an error that names the file
package eksclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
)

const (
	// profile is the one profile of the account's files.
	profile = "default"
	// answerTime is how long an answer may take; the service reads and writes a few objects for it.
	answerTime = 30 * time.Second
	// maxAnswer is the size of an answer in bytes.
	maxAnswer = 1 << 20
)

// Client asks one account.
type Client struct {
	endpoint, region string
	credentials      aws.Credentials
	http             *http.Client
	now              func() time.Time
}

// New makes a client by an account's configuration and its credentials, two files as AWS's tools read them.
func New(ctx context.Context, config, credentials string) (*Client, error) {
	shared, err := awsconfig.LoadSharedConfigProfile(ctx, profile, func(o *awsconfig.LoadSharedConfigOptions) {
		o.ConfigFiles, o.CredentialsFiles = []string{config}, []string{credentials}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the account's address and keys: %w", err)
	}
	switch {
	case shared.BaseEndpoint == "" || shared.CustomCABundle == "" || shared.Region == "":
		return nil, fmt.Errorf("%s does not have the account's address: `muster up` writes it again", config)
	case !shared.Credentials.HasKeys():
		return nil, fmt.Errorf("%s has no keys of the account's first user: docs/iam.md says how they are made anew", credentials)
	}
	pem, err := os.ReadFile(shared.CustomCABundle)
	if err != nil {
		return nil, fmt.Errorf("reading the account's authority: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate of the account's authority", shared.CustomCABundle)
	}
	return &Client{
		endpoint: strings.TrimSuffix(shared.BaseEndpoint, "/"), region: shared.Region, credentials: shared.Credentials, now: time.Now,
		http: &http.Client{Timeout: answerTime, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}},
	}, nil
}

// UpdateClusterVersion asks for another minor version of a cluster, and returns the id of the Update. Force passes over
// insights that stand against it.
func (c *Client) UpdateClusterVersion(ctx context.Context, cluster, version string, force bool) (id string, err error) {
	body := map[string]any{"version": version}
	if force {
		body["force"] = true
	}
	return c.update(ctx, body, "clusters", cluster, "updates")
}

// UpdateNodegroupVersion asks for another minor version of the machines of a node group, and returns the id of the
// Update.
func (c *Client) UpdateNodegroupVersion(ctx context.Context, cluster, group, version string) (id string, err error) {
	return c.update(ctx, map[string]any{"version": version}, "clusters", cluster, "node-groups", group, "update-version")
}

// AddonChange is what UpdateAddon asks for. EKS takes away a role that it does not name.
type AddonChange struct {
	Version               string `json:"addonVersion"`
	ServiceAccountRoleARN string `json:"serviceAccountRoleArn,omitempty"`
	ResolveConflicts      string `json:"resolveConflicts,omitempty"`
}

// UpdateAddon asks for another version of an add-on, and returns the id of the Update.
func (c *Client) UpdateAddon(ctx context.Context, cluster, addon string, change AddonChange) (id string, err error) {
	return c.update(ctx, change, "clusters", cluster, "addons", addon, "update")
}

// Error is a refusal by the API.
type Error struct {
	// Code is EKS's name of the error, such as ResourceInUseException.
	Code string
	// Message is what the API says.
	Message string
}

// Error implements [error], in the order of AWS's own tools.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// FargateProfile is what CreateFargateProfile asks for.
type FargateProfile struct {
	Name      string            `json:"fargateProfileName"`
	RoleARN   string            `json:"podExecutionRoleArn"`
	Subnets   []string          `json:"subnets,omitempty"`
	Selectors []FargateSelector `json:"selectors"`
}

// FargateSelector selects pods by patterns of their namespace and labels.
type FargateSelector struct {
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// CreateFargateProfile asks for a Fargate profile of a cluster.
func (c *Client) CreateFargateProfile(ctx context.Context, cluster string, p FargateProfile) error {
	_, err := c.post(ctx, p, "clusters", cluster, "fargate-profiles")
	return err
}

// update posts a body to a path, and returns the id of the Update that the API made.
func (c *Client) update(ctx context.Context, body any, path ...string) (id string, err error) {
	answer, err := c.post(ctx, body, path...)
	if err == nil && answer.Update.ID == "" {
		err = errors.New("reading the answer of EKS's API: it names no update")
	}
	return answer.Update.ID, err
}

// answer is what is read of an answer of the API.
type answer struct {
	Message string
	Update  struct{ ID string }
}

// post posts a body to a path.
func (c *Client) post(ctx context.Context, body any, path ...string) (answer, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return answer{}, fmt.Errorf("writing a request of EKS's API: %w", err)
	}
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+"/"+strings.Join(path, "/"), bytes.NewReader(raw))
	if err != nil {
		return answer{}, fmt.Errorf("writing a request of EKS's API: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	hash := sha256.Sum256(raw)
	if err := v4.NewSigner().SignHTTP(ctx, c.credentials, request, hex.EncodeToString(hash[:]), "eks", c.region, c.now()); err != nil {
		return answer{}, fmt.Errorf("signing a request of EKS's API: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("EKS's API does not answer: %w; `muster status` shows how the account is", err)
	}
	defer func() { _ = response.Body.Close() }()
	return read(response)
}

// read is what an answer has, or the refusal that it is.
func read(response *http.Response) (said answer, err error) {
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer of EKS's API: %w", err)
	}
	err = json.Unmarshal(raw, &said)
	if response.StatusCode != http.StatusOK {
		code, _, _ := strings.Cut(response.Header.Get("X-Amzn-Errortype"), ":")
		if code == "" || err != nil {
			return answer{}, fmt.Errorf("EKS's API answers %s: %.200q", response.Status, raw)
		}
		return answer{}, &Error{Code: code, Message: said.Message}
	}
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer of EKS's API: %w", err)
	}
	return said, nil
}
