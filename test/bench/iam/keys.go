// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/sigv4"
)

// keysSocket is the socket of the key service, in the benchmark's directory.
const keysSocket = "keys/socket"

// keysMain is a key service as muster serve has one, on a real socket, that derives keys of secrets it can tell from the key's id. It
// lives as long as its standard input.
func keysMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("keys", flag.ContinueOnError)
	socket := flags.String("socket", "", "path of the socket")
	if err := flags.Parse(args); err != nil {
		return err
	}
	server, err := keyservice.NewServer(keyservice.ServerConfig{Backend: backend{}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	listener, err := server.Listen(ctx, *socket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fmt.Println(*socket)
	go func() {
		untilClosed()
		cancel()
	}()
	if err := server.Serve(ctx, listener); err != nil && !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return err
	}
	return nil
}

// backend knows the benchmark's sessions. Nothing changes.
type backend struct{}

func (backend) Resolve(_ context.Context, id, session string, scope sigv4.Scope) (keyservice.Resolved, error) {
	if !strings.HasPrefix(id, goodKey) || session != sessionTokenOf(id) {
		return keyservice.Resolved{}, &keyservice.Unknown{Code: "InvalidClientTokenId", Reason: "there is no such key"}
	}
	return keyservice.Resolved{
		Key: sigv4.Derive(secretOf(id), scope), ARN: sessionARNOf(id), Account: account, UserID: userIDOf(id), SessionName: sessionNameOf(id),
		ValidUntil: time.Now().Add(time.Hour),
	}, nil
}

func (backend) Refused(context.Context, keyservice.Refused) error { return nil }

func (backend) RoleCredentials(context.Context, string) (keyservice.RoleCredentials, error) {
	return keyservice.RoleCredentials{}, &keyservice.Unknown{Code: "NoSuchEntity", Reason: "there are no instances"}
}

func (backend) Changes() keyservice.Feed { return quiet{} }

type quiet struct{}

func (quiet) Ready() <-chan struct{}  { return nil }
func (quiet) Take() keyservice.Change { return keyservice.Change{} }
func (quiet) Close()                  {}
