// SPDX-License-Identifier: Apache-2.0

package podidentityagent

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
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	// patience is how long one question may take: SDKs wait for a second or more, and try again.
	patience = 4 * time.Second
	// maxAnswer bounds an answer.
	maxAnswer = 64 << 10
	// early is how long before their end the credentials of the machine are got anew.
	early = 5 * time.Minute
)

// EKSAuth asks EKS Auth with the credentials of the machine's role.
type EKSAuth struct {
	// Endpoint is the URL of the service; empty for that of the region.
	Endpoint, Region string
	// Cluster returns the name of the cluster.
	Cluster func() string
	// Authorities is the file of the authority that the service is verified by.
	Authorities string
	// Role gets the credentials of the machine's role.
	Role func(context.Context) (aws.Credentials, error)
	// Now is the clock; time.Now if nil.
	Now func() time.Time

	mu     sync.Mutex
	client *http.Client
	role   aws.Credentials
}

var _ Asker = (*EKSAuth)(nil)

// Ask implements [Asker]. Credentials of the machine that the service does not take are got anew, once.
func (e *EKSAuth) Ask(ctx context.Context, token string) (Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for again := range 2 {
		role, err := e.machine(ctx, again > 0)
		if err != nil {
			return Credentials{}, err
		}
		credentials, err := e.ask(ctx, token, role)
		if refused, ok := errors.AsType[*Refused](err); !ok || !refused.ofMachine() {
			return credentials, err
		} else if again > 0 {
			return Credentials{}, fmt.Errorf("EKS Auth does not take the credentials of this machine: %w", errors.New(refused.Error()))
		}
	}
	return Credentials{}, nil
}

// ofMachine reports whether a refusal is of the machine's own credentials, and so says nothing about the pod.
func (r *Refused) ofMachine() bool {
	switch r.Code {
	case "ExpiredTokenException": // with another status it is the pod's token
		return r.Status == http.StatusForbidden
	case "UnrecognizedClientException", "InvalidSignatureException", "MissingAuthenticationTokenException", "IncompleteSignatureException":
		return true
	}
	return false
}

// machine are the credentials of the machine's role.
func (e *EKSAuth) machine(ctx context.Context, anew bool) (aws.Credentials, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !anew && e.role.HasKeys() && e.now().Before(e.role.Expires.Add(-early)) {
		return e.role, nil
	}
	role, err := e.Role(ctx)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("getting the credentials of this machine's role: %w", err)
	}
	e.role = role
	return role, nil
}

func (e *EKSAuth) now() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}

func (e *EKSAuth) ask(ctx context.Context, token string, role aws.Credentials) (Credentials, error) {
	client, err := e.http()
	if err != nil {
		return Credentials{}, err
	}
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		return Credentials{}, fmt.Errorf("asking EKS Auth: %w", err)
	}
	endpoint := e.Endpoint
	if endpoint == "" {
		endpoint = "https://eks-auth." + e.Region + ".api.aws"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/clusters/"+url.PathEscape(e.Cluster())+"/assume-role-for-pod-identity", bytes.NewReader(body))
	if err != nil {
		return Credentials{}, fmt.Errorf("asking EKS Auth: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	sum := sha256.Sum256(body)
	if err := signer.NewSigner().SignHTTP(ctx, role, request, hex.EncodeToString(sum[:]), "eks-auth", e.Region, e.now()); err != nil {
		return Credentials{}, fmt.Errorf("signing a request to EKS Auth: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return Credentials{}, fmt.Errorf("asking EKS Auth: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return Credentials{}, fmt.Errorf("asking EKS Auth: %w", err)
	}
	return readAnswer(response, raw)
}

// readAnswer reads credentials, or why there are none. A refusal that may be another in a moment is not one.
func readAnswer(response *http.Response, raw []byte) (Credentials, error) {
	if response.StatusCode != http.StatusOK {
		code, said := response.Header.Get("X-Amzn-Errortype"), struct {
			Message string `json:"message"`
		}{}
		_ = json.Unmarshal(raw, &said) // the code is enough
		if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests || code == "" {
			return Credentials{}, fmt.Errorf("asking EKS Auth: %s %s: %s", response.Status, code, said.Message)
		}
		return Credentials{}, &Refused{Status: response.StatusCode, Code: code, Message: said.Message}
	}
	var got struct {
		Credentials struct {
			SessionToken, SecretAccessKey string
			AccessKeyID                   string `json:"accessKeyId"`
			Expiration                    float64
		}
		AssumedRoleUser struct{ ARN string }
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return Credentials{}, errors.New("EKS Auth gave an answer that is not one")
	}
	c := got.Credentials
	if c.AccessKeyID == "" || c.SecretAccessKey == "" || c.SessionToken == "" || c.Expiration <= 0 {
		return Credentials{}, errors.New("EKS Auth gave an answer without credentials")
	}
	return Credentials{
		AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, Token: c.SessionToken, AccountID: accountOf(got.AssumedRoleUser.ARN),
		Expiration: time.Unix(int64(c.Expiration), 0),
	}, nil
}

// http is a client that trusts the account's authority alone.
func (e *EKSAuth) http() (*http.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client != nil {
		return e.client, nil
	}
	pem, err := os.ReadFile(e.Authorities)
	if err != nil {
		return nil, fmt.Errorf("reading the authority of EKS Auth: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the authority of EKS Auth: %s has no certificate", e.Authorities)
	}
	e.client = &http.Client{
		Timeout: patience,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: patience,
			MaxIdleConnsPerHost: 4, MaxConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return e.client, nil
}
