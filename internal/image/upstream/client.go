// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// MaxManifest bounds a manifest, in bytes (distribution-spec, "Pushing Manifests").
const MaxManifest = 4 << 20

// MediaTypeDockerList is Docker's for an index of images.
const MediaTypeDockerList = "application/vnd.docker.distribution.manifest.list.v2+json"

// MediaTypes are those of manifests, Docker's too.
var MediaTypes = []string{
	ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex,
	"application/vnd.docker.distribution.manifest.v2+json", MediaTypeDockerList,
}

// StatusError is a registry's answer that is not what was asked for.
type StatusError struct {
	Registry string
	Status   int
	// Message is the registry's own, cut.
	Message string
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.Registry, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Config is what a client needs.
type Config struct {
	// Registry as it is called in the names of images: docker.io.
	Registry string
	Way      Way
	// Credentials finds the user and password of a registry, which a redirect may have led to; both are empty if there
	// are none. nil pulls as anybody.
	Credentials func(registry string) (user, password string, err error)
}

// Client pulls from one registry.
type Client struct {
	config    Config
	base      string
	transport *transport
	http      *http.Client

	mutex sync.Mutex
	login map[place]login
}

// New makes a client. Nothing is asked yet.
func New(c Config) (*Client, error) {
	if c.Registry == "" || c.Way.Refuse == nil {
		return nil, errors.New("a client needs the name of a registry, and what decides about addresses")
	}
	t, err := newTransport(c.Way)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", c.Registry, err)
	}
	if c.Credentials == nil {
		c.Credentials = func(string) (string, string, error) { return "", "", nil }
	}
	made := &Client{config: c, base: "https://" + hostOf(c.Registry) + "/v2/", transport: t, login: map[place]login{}}
	made.http = &http.Client{Transport: t, CheckRedirect: made.redirect}
	return made, nil
}

// redirect gives a request that a registry redirects what the new host itself has asked for: neither a password nor a
// token goes to a host because another one leads there (containerd's resolver: core/remotes/docker/resolver.go,
// request.do).
func (c *Client) redirect(to *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if to.URL.Host != via[0].URL.Host { // net/http leaves it to hosts below
		to.Header.Del("Authorization")
	}
	if header := c.loggedIn(placeOf(to.URL)); header != "" {
		to.Header.Set("Authorization", header) //nolint:gosec // G119: it is what this very host has asked for
	}
	return nil
}

// Close ends connections that rest.
func (c *Client) Close() { c.transport.close() }

// Head asks for the digest that a tag leads to. It is empty if the registry does not say.
func (c *Client) Head(ctx context.Context, repository, tag string) (digest.Digest, error) {
	response, err := c.do(ctx, http.MethodHead, repository, "manifests/"+tag)
	if err != nil {
		return "", err
	}
	_ = response.Body.Close()
	sum := digest.Digest(response.Header.Get("Docker-Content-Digest"))
	if err := sum.Validate(); err != nil {
		return "", nil //nolint:nilerr // not every registry says it
	}
	return sum, nil
}

// Manifest gets the manifest that a tag or a digest leads to.
func (c *Client) Manifest(ctx context.Context, repository, reference string) (mediaType string, content []byte, err error) {
	response, err := c.do(ctx, http.MethodGet, repository, "manifests/"+reference)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err = io.ReadAll(io.LimitReader(response.Body, MaxManifest+1))
	if err != nil {
		return "", nil, fmt.Errorf("reading a manifest of %s: %w", c.config.Registry, err)
	}
	if len(content) > MaxManifest {
		return "", nil, &StatusError{c.config.Registry, http.StatusRequestEntityTooLarge, fmt.Sprintf("the manifest has more than %d bytes", MaxManifest)}
	}
	mediaType, _, _ = strings.Cut(response.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(mediaType), content, nil
}

// Blob opens a blob, whose size is -1 if the registry does not say. The caller closes it, and bounds and checks what it
// reads.
func (c *Client) Blob(ctx context.Context, repository string, sum digest.Digest) (body io.ReadCloser, size int64, err error) {
	response, err := c.do(ctx, http.MethodGet, repository, "blobs/"+sum.String())
	if err != nil {
		return nil, 0, err
	}
	return response.Body, response.ContentLength, nil
}

// maxChallenges bounds the hosts that a token is got for in one request: the registry, and two that it redirects to.
const maxChallenges = 3

// do sends a request, with a token for each host that asks for one.
func (c *Client) do(ctx context.Context, method, repository, path string) (*http.Response, error) {
	asked := map[place]bool{}
	for {
		request, err := http.NewRequestWithContext(ctx, method, c.base+repository+"/"+path, http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("asking %s: %w", c.config.Registry, err)
		}
		if strings.HasPrefix(path, "manifests/") {
			request.Header["Accept"] = MediaTypes
		}
		request.Header.Set("User-Agent", "muster")
		if header := c.loggedIn(placeOf(request.URL)); header != "" {
			request.Header.Set("Authorization", header)
		}
		response, err := c.http.Do(request)
		if err != nil {
			return nil, fmt.Errorf("asking %s: %w", c.config.Registry, inner(err))
		}
		at := placeOf(response.Request.URL) // the place that a redirect led to
		switch {
		case response.StatusCode == http.StatusOK:
			return response, nil
		case response.StatusCode == http.StatusUnauthorized && at.repository != "" && !asked[at] && len(asked) < maxChallenges:
			_ = response.Body.Close()
			asked[at] = true
			if err := c.logIn(ctx, at, response.Header.Values("Www-Authenticate")); err != nil {
				return nil, err
			}
			continue
		}
		defer func() { _ = response.Body.Close() }()
		return nil, statusOf(at.registry, response)
	}
}

// inner is the cause of an error of net/http without the URL, which may hold a registry's signature.
func inner(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// maxMessage bounds what is repeated of a registry's words, in bytes.
const maxMessage = 200

func statusOf(registry string, response *http.Response) *StatusError {
	e := &StatusError{Registry: registry, Status: response.StatusCode}
	var body struct {
		Errors []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, 16<<10))
	if err == nil && json.Unmarshal(raw, &body) == nil && len(body.Errors) > 0 {
		text := strings.ToValidUTF8(body.Errors[0].Code+": "+body.Errors[0].Message, "?")
		e.Message = text[:min(len(text), maxMessage)]
	}
	return e
}
