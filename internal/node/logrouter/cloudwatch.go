// SPDX-License-Identifier: Apache-2.0

package logrouter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"muster.dev/muster/internal/node/fluentbit"
)

const (
	// patience is how long one request may take: events are on the disk when it is answered.
	patience = 30 * time.Second
	// maxAnswer bounds an answer.
	maxAnswer = 64 << 10
	// early is how long before their end credentials are got anew.
	early = 5 * time.Minute
)

// CloudWatch puts events by CloudWatch Logs' API, with the credentials of the machine's role.
type CloudWatch struct {
	// Endpoint is the URL of the service; empty for that of the region.
	Endpoint, Region string
	// Authorities is the file of the authority that the service is verified by.
	Authorities string
	// Role gets the credentials of the machine's role.
	Role func(context.Context) (aws.Credentials, error)

	mu     sync.Mutex
	client *http.Client
	role   aws.Credentials
	made   map[string]bool // the log streams that are there
}

var _ Sink = (*CloudWatch)(nil)

// fault is an answer that is an error.
type fault struct{ code, message string }

func (f *fault) Error() string { return f.code + ": " + f.message }

func isFault(err error, codes ...string) bool {
	f, ok := err.(*fault) //nolint:errorlint // ask returns it as it is
	return ok && slices.Contains(codes, f.code)
}

const (
	notFound      = "ResourceNotFoundException"
	alreadyExists = "ResourceAlreadyExistsException"
)

// Put implements [Sink]. A log stream is made when it is first written to, and a log group if the output says so.
func (c *CloudWatch) Put(ctx context.Context, to fluentbit.Output, stream string, events []Event) error {
	key := to.Group + ":" + stream
	if !c.knows(key) {
		if err := c.makeStream(ctx, to, stream); err != nil {
			return err
		}
		c.note(key, true)
	}
	type logEvent struct {
		Timestamp int64  `json:"timestamp"`
		Message   string `json:"message"`
	}
	in := struct {
		LogGroupName  string     `json:"logGroupName"`
		LogStreamName string     `json:"logStreamName"`
		LogEvents     []logEvent `json:"logEvents"`
	}{LogGroupName: to.Group, LogStreamName: stream}
	for _, e := range events {
		in.LogEvents = append(in.LogEvents, logEvent{e.Time.UnixMilli(), e.Message})
	}
	err := c.ask(ctx, "PutLogEvents", in)
	if isFault(err, notFound) {
		c.note(key, false) // somebody has deleted it: it is made again
	}
	return forGood(err)
}

// forGood has a fault that another try would meet again be a refusal: of events, or of the name of a log stream that a line of a pod may have given.
func forGood(err error) error {
	if isFault(err, "InvalidParameterException", "ValidationException", "SerializationException") {
		return &Refused{Why: err.Error()}
	}
	return err
}

// makeStream makes a log stream, and perhaps its log group.
func (c *CloudWatch) makeStream(ctx context.Context, to fluentbit.Output, stream string) error {
	name := map[string]string{"logGroupName": to.Group, "logStreamName": stream}
	err := c.ask(ctx, "CreateLogStream", name)
	if isFault(err, notFound) && to.CreateGroup {
		if err := c.makeGroup(ctx, to); err != nil {
			return err
		}
		err = c.ask(ctx, "CreateLogStream", name)
	}
	if isFault(err, alreadyExists) {
		return nil
	}
	return forGood(err)
}

func (c *CloudWatch) makeGroup(ctx context.Context, to fluentbit.Output) error {
	err := c.ask(ctx, "CreateLogGroup", map[string]string{"logGroupName": to.Group})
	if isFault(err, alreadyExists) {
		return nil // another machine was first
	}
	if err == nil && to.Retention > 0 {
		err = c.ask(ctx, "PutRetentionPolicy", map[string]any{"logGroupName": to.Group, "retentionInDays": to.Retention})
	}
	return err
}

func (c *CloudWatch) knows(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[key]
}

func (c *CloudWatch) note(key string, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]bool{}
	}
	c.made[key] = there
}

// ask sends a request. Credentials that are not taken are got anew for the next one.
func (c *CloudWatch) ask(ctx context.Context, action string, in any) error {
	role, err := c.credentials(ctx)
	if err != nil {
		return err
	}
	client, err := c.http()
	if err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("writing a request to CloudWatch Logs: %w", err)
	}
	endpoint := c.Endpoint
	if endpoint == "" {
		endpoint = "https://logs." + c.Region + ".amazonaws.com"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking CloudWatch Logs: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "Logs_20140328."+action)
	sum := sha256.Sum256(body)
	if err := signer.NewSigner().SignHTTP(ctx, role, request, hex.EncodeToString(sum[:]), "logs", c.Region, time.Now()); err != nil {
		return fmt.Errorf("signing a request to CloudWatch Logs: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking CloudWatch Logs: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("asking CloudWatch Logs: %w", err)
	}
	return c.answer(response, raw)
}

// answer is the error of an answer.
func (c *CloudWatch) answer(response *http.Response, raw []byte) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var said struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
		Upper   string `json:"Message"`
	}
	if json.Unmarshal(raw, &said) != nil || said.Type == "" {
		return fmt.Errorf("asking CloudWatch Logs: %s", response.Status)
	}
	f := &fault{code: said.Type[strings.LastIndexByte(said.Type, '#')+1:], message: said.Message + said.Upper}
	if isFault(f, "ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException") {
		c.mu.Lock()
		c.role = aws.Credentials{}
		c.mu.Unlock()
	}
	return f
}

func (c *CloudWatch) credentials(ctx context.Context) (aws.Credentials, error) {
	c.mu.Lock()
	role := c.role
	c.mu.Unlock()
	if role.HasKeys() && time.Now().Before(role.Expires.Add(-early)) {
		return role, nil
	}
	role, err := c.Role(ctx)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("getting the credentials of the pod execution role: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.role = role
	return role, nil
}

// http is a client that trusts the account's authority alone.
func (c *CloudWatch) http() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	pem, err := os.ReadFile(c.Authorities)
	if err != nil {
		return nil, fmt.Errorf("reading the authority of CloudWatch Logs: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the authority of CloudWatch Logs: %s has no certificate", c.Authorities)
	}
	c.client = &http.Client{
		Timeout: patience,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: patience,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c.client, nil
}
