// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/platform/mutualclient"
	"muster.dev/muster/internal/platform/termsafe"
)

// ClientConfig says where a host is asked, and how both sides know each other.
type ClientConfig struct {
	// URL is that of the host's server, such as https://192.0.2.7:8445.
	URL string
	// Authority is the file with the authority of the server, and Server the common name of its certificate.
	Authority, Server string
	// Credential is the file with the client's certificate and key.
	Credential string
}

// Client is a host that is asked by TLS.
type Client struct {
	url string
	// asking is bounded in time as a whole; streams are connections that stay.
	asking, streams *http.Client
}

var _ Host = (*Client)(nil)

// NewClient makes a client. Nothing is asked yet, and the files are read for each connection.
func NewClient(c ClientConfig) *Client {
	return &Client{
		url:     c.URL,
		asking:  mutualclient.New(c.Authority, c.Credential, c.Server, patience),
		streams: mutualclient.New(c.Authority, c.Credential, c.Server, 0),
	}
}

// Close ends connections that nothing uses.
func (c *Client) Close() {
	c.asking.CloseIdleConnections()
	c.streams.CloseIdleConnections()
}

// Launch implements [Host].
func (c *Client) Launch(ctx context.Context, request Launch) (machine.Instance, error) {
	instance, err := ask(ctx, c, launching(), request)
	return only(request.Request.ID, instance, err)
}

// Get implements [Host].
func (c *Client) Get(ctx context.Context, request Machine) (machine.Instance, error) {
	instance, err := ask(ctx, c, getting(), request)
	return only(request.ID, instance, err)
}

// only refuses an answer about another machine.
func only(id string, instance machine.Instance, err error) (machine.Instance, error) {
	if err == nil && (instance.ID != id || !instance.PrivateIP.IsValid()) {
		err = fmt.Errorf("the host answers about %.40q with the address %s, and was asked about %s", instance.ID, instance.PrivateIP, id)
	}
	if err != nil {
		return machine.Instance{}, err
	}
	return instance, nil
}

// List implements [Host].
func (c *Client) List(ctx context.Context, request List) ([]machine.Instance, error) {
	return ask(ctx, c, listing(), request)
}

// Stop implements [Host].
func (c *Client) Stop(ctx context.Context, request Machine) error {
	_, err := ask(ctx, c, stopping(), request)
	return err
}

// Terminate implements [Host].
func (c *Client) Terminate(ctx context.Context, request Machine) error {
	_, err := ask(ctx, c, terminating(), request)
	return err
}

// Report implements [Host].
func (c *Client) Report(ctx context.Context, request Machine) (*bootreport.Report, error) {
	return ask(ctx, c, reporting(), request)
}

// Boot implements [Answerer].
func (c *Client) Boot(ctx context.Context, request Machine) (string, error) {
	return ask(ctx, c, booting(), request)
}

// Mount implements [Mounter].
func (c *Client) Mount(ctx context.Context, request Mount) error {
	_, err := ask(ctx, c, mounting(), request)
	return err
}

// Mounted implements [Mounter].
func (c *Client) Mounted(ctx context.Context, request Mount) (bool, error) {
	return ask(ctx, c, lookingAtMount(), request)
}

// Unmount implements [Mounter].
func (c *Client) Unmount(ctx context.Context, request Unmount) error {
	_, err := ask(ctx, c, unmounting(), request)
	return err
}

// Writers implements [Mounter].
func (c *Client) Writers(ctx context.Context, request Volume) ([]string, error) {
	return ask(ctx, c, lookingForWriters(), request)
}

// Resize implements [Mounter].
func (c *Client) Resize(ctx context.Context, request Volume) error {
	_, err := ask(ctx, c, resizing(), request)
	return err
}

// Sweep implements [Mounter].
func (c *Client) Sweep(ctx context.Context, request Sweep) error {
	_, err := ask(ctx, c, sweeping(), request)
	return err
}

// Load implements [Loader]. The context alone bounds it in time.
func (c *Client) Load(ctx context.Context, request Load, archive io.Reader) error {
	ask, err := encode(request)
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+prefix+loading, io.NopCloser(archive)) //nolint:gosec // G704: at the host that the client is of
	if err != nil {
		return fmt.Errorf("asking a host: %w", err)
	}
	post.Header.Set("Content-Type", archiveType)
	post.Header.Set(loadHeader, string(ask))
	response, err := c.streams.Do(post) //nolint:gosec // G704: at the host that the client is of
	if err != nil {
		return fmt.Errorf("asking a host: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return refusal(ctx, response)
	}
	return nil
}

// Unload implements [Loader].
func (c *Client) Unload(ctx context.Context, request Unload) error {
	_, err := ask(ctx, c, unloading(), request)
	return err
}

// Images implements [Loader].
func (c *Client) Images(ctx context.Context) ([]imagestore.Entry, error) {
	return ask(ctx, c, listingImages(), Images{})
}

// Shown implements [Loader].
func (c *Client) Shown(ctx context.Context, request Shown) ([]string, error) {
	return ask(ctx, c, lookingAtShown(), request)
}

// Dial implements [Host].
func (c *Client) Dial(ctx context.Context, request Dial) (net.Conn, error) {
	stream, err := c.stream(ctx, dialing, request)
	if err != nil {
		return nil, err
	}
	return connection(stream), nil
}

// stream asks for an operation whose answer is a connection.
func (c *Client) stream(ctx context.Context, name string, request any) (io.ReadWriteCloser, error) {
	response, err := c.send(ctx, c.streams, name, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer func() { _ = response.Body.Close() }()
		return nil, refusal(ctx, response)
	}
	body, ok := response.Body.(io.ReadWriteCloser)
	if !ok || response.Header.Get("Upgrade") != upgrade {
		_ = response.Body.Close()
		return nil, errors.New("the host answers with something else than a connection")
	}
	return body, nil
}

// connection makes a connection, with deadlines, of the stream that an answer became.
func connection(stream io.ReadWriteCloser) net.Conn {
	near, far := net.Pipe()
	go func() {
		_, _ = io.Copy(far, stream) // the user of the connection sees its end
		_ = far.Close()
	}()
	go func() {
		_, _ = io.Copy(stream, far)
		_ = stream.Close()
	}()
	return near
}

// ask asks for one operation.
func ask[Q request, A any](ctx context.Context, c *Client, o operation[Q, A], request Q) (A, error) {
	var answer A
	response, err := c.send(ctx, c.asking, o.name, request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return answer, refusal(ctx, response)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer, fmt.Errorf("reading the answer of a host: %w", err)
	case len(raw) > maxAnswer:
		return answer, fmt.Errorf("reading the answer of a host: it has more than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return answer, fmt.Errorf("reading the answer of a host: %w", err)
	}
	return answer, nil
}

// send sends a request; the answer's body is the caller's to close.
func (c *Client) send(ctx context.Context, by *http.Client, name string, value any) (*http.Response, error) {
	body, err := encode(value)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+prefix+name, bytes.NewReader(body)) //nolint:gosec // G704: at the host that the client is of
	if err != nil {
		return nil, fmt.Errorf("asking a host: %w", err)
	}
	request.Header.Set("Content-Type", contentType)
	if by == c.streams {
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", upgrade)
	}
	response, err := by.Do(request) //nolint:gosec // G704: at the host that the client is of
	if err != nil {
		return nil, fmt.Errorf("asking a host: %w", err)
	}
	return response, nil
}

// refusal is the error of an answer that is not what was asked for. A host that sees its caller go may still be heard, as
// it closes: a caller that went is told so, whatever the host makes of it.
func refusal(ctx context.Context, response *http.Response) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking a host: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxFault))
	if err != nil {
		return fmt.Errorf("reading the answer of a host: %w", err)
	}
	var f fault
	if response.StatusCode == http.StatusConflict && json.Unmarshal(raw, &f) == nil && f.Message != "" {
		return f.err()
	}
	return fmt.Errorf("the host answers %s: %s", response.Status, termsafe.Line(shorten(string(raw))))
}
