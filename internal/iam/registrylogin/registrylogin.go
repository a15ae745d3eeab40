// SPDX-License-Identifier: Apache-2.0

package registrylogin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/socketdir"
)

const (
	path = "/v1/decide"
	// maxBody bounds questions and answers, in bytes.
	maxBody = 64 << 10
	// answerTime is how long an answer may take; patience is how long a client goes on asking an account that is being
	// restarted.
	answerTime = 2 * time.Second
	patience   = 5 * time.Second
)

// Question is a request that came to the registry.
type Question struct {
	Password string `json:"password"`
	// Actions on Resource, which is an ARN or "*".
	Actions  []string `json:"actions,omitempty"`
	Resource string   `json:"resource,omitempty"`
	// Source is the address of the client, UserAgent what it calls itself.
	Source    string `json:"source,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
}

// String keeps the password out of what is printed.
func (q Question) String() string {
	return fmt.Sprintf("question about %v on %s", q.Actions, q.Resource)
}

// GoString keeps the password out of what is printed.
func (q Question) GoString() string { return q.String() }

// LogValue keeps the password out of logs.
func (q Question) LogValue() slog.Value { return slog.StringValue(q.String()) }

// Answer names the principal of a request and the actions that it may not do.
type Answer struct {
	Principal string `json:"principal"`
	Account   string `json:"account"`
	// Denied says why, for each action that is not allowed.
	Denied map[string]string `json:"denied,omitempty"`
}

// RefusedError is a password that is not good, and why.
type RefusedError struct {
	Reason string `json:"reason"`
}

func (e *RefusedError) Error() string { return e.Reason }

// Backend decides. A password that is not good is a *RefusedError.
type Backend interface {
	Decide(Question) (Answer, error)
}

// Serve answers on a socket until the context ends. It takes the place of a socket that a killed service left.
func Serve(ctx context.Context, socket string, backend Backend, log *slog.Logger) error {
	listener, err := socketdir.ListenPrivate(ctx, socket)
	if err != nil {
		return fmt.Errorf("listening for the image registry: %w", err)
	}
	server := &http.Server{
		Handler: handler(backend), ReadHeaderTimeout: answerTime, ReadTimeout: answerTime, WriteTimeout: answerTime, IdleTimeout: time.Minute, MaxHeaderBytes: 4 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(trusted{listener}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering the image registry: %w", err)
	}
	return nil
}

func handler(backend Backend) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var q Question
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q); err != nil {
			http.Error(w, "the question cannot be read", http.StatusBadRequest)
			return
		}
		answer, err := backend.Decide(q)
		no, refused := errors.AsType[*RefusedError](err)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case refused:
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(no)
		case err != nil:
			http.Error(w, "the account cannot tell", http.StatusServiceUnavailable)
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	})
	return mux
}

// trusted lets root and this user in.
type trusted struct{ net.Listener }

// Accept closes connections of others.
func (t trusted) Accept() (net.Conn, error) {
	for {
		connection, err := t.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if checkPeer(connection) == nil {
			return connection, nil
		}
		_ = connection.Close()
	}
}

// checkPeer asks the kernel for the user at the other end (SO_PEERCRED, unix(7)).
func checkPeer(connection net.Conn) error {
	with, ok := connection.(syscall.Conn)
	if !ok {
		return errors.New("the connection is not a socket")
	}
	raw, err := with.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if failed := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); failed != nil || err != nil {
		return errors.Join(failed, err)
	}
	if peer.Uid != 0 && int64(peer.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("user %d is at the other end; only root or user %d may be", peer.Uid, os.Geteuid())
	}
	return nil
}

// Client asks the account.
type Client struct{ http http.Client }

// NewClient makes a client of a socket. Nothing is asked yet.
func NewClient(socket string) *Client {
	return &Client{http.Client{Timeout: patience + answerTime, Transport: &http.Transport{
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, socket) },
	}}}
}

// dial tries again while nobody listens: the account is being restarted.
func dial(ctx context.Context, socket string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			if err = checkPeer(connection); err == nil {
				return connection, nil
			}
			return nil, errors.Join(err, connection.Close())
		}
		if !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.ENOENT) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Decide asks. A password that is not good is a *RefusedError.
func (c *Client) Decide(ctx context.Context, q Question) (Answer, error) {
	body, err := json.Marshal(q) //nolint:gosec // G117: it goes over a unix socket to the account, to be checked
	if err != nil {
		return Answer{}, fmt.Errorf("asking the account: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://account"+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("asking the account: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("asking the account: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return Answer{}, fmt.Errorf("asking the account: %w", err)
	}
	var answer Answer
	switch response.StatusCode {
	case http.StatusOK:
		if err := json.Unmarshal(content, &answer); err != nil || answer.Principal == "" {
			return Answer{}, errors.New("asking the account: its answer cannot be read")
		}
		return answer, nil
	case http.StatusUnauthorized:
		no := &RefusedError{}
		if err := json.Unmarshal(content, no); err != nil {
			no.Reason = "the password is not good"
		}
		return Answer{}, no
	}
	return Answer{}, fmt.Errorf("asking the account: it answers %s", response.Status)
}
