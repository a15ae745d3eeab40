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
	"path/filepath"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
)

// keysSocket is the socket of the key service, in the benchmark's directory.
const keysSocket = "keys/socket"

// keysMain is an account's service as muster serve has one, on a real socket, that knows secrets by the key's id. It
// lives as long as its standard input.
func keysMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("keys", flag.ContinueOnError)
	socket := flags.String("socket", "", "path of the socket")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := makeCredentials(filepath.Dir(*socket)); err != nil {
		return err
	}
	server, err := keyservice.NewServer(keyservice.ServerConfig{
		Backend: backend{}, Credential: credential(*socket, "account"), Clusters: func(who caller.Caller) bool { return who.Cluster == cluster },
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
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

// makeCredentials makes those of the account and of the benchmark's authenticator, as muster serve does.
func makeCredentials(dir string) error {
	name, organizations := caller.Authenticator(cluster, "0A1B").Subject()
	_, err := authority.NewStore(filepath.Join(dir, "pki")).Ensure([]authority.Credential{
		{Name: "account", Authority: authority.Account, CommonName: "muster:account", DNSNames: []string{caller.ServerName}},
		{Name: "authenticator", Authority: authority.Account, CommonName: name, Organizations: organizations, Client: true},
	}, time.Now())
	return err
}

// credential is one of them, which are beside the socket.
func credential(socket, name string) keyservice.Credential {
	store := authority.NewStore(filepath.Join(filepath.Dir(socket), "pki"))
	return keyservice.Credential{CA: store.AuthorityPath(authority.Account), File: store.Path(name)}
}

// backend knows the benchmark's sessions. Nothing changes.
type backend struct{}

func (backend) Verify(_ context.Context, cluster, host, query string) (keyservice.Maker, error) {
	t, err := ststoken.Read(host, query, cluster, time.Now())
	if err != nil {
		return keyservice.Maker{}, err
	}
	id := t.Signed.AccessKeyID
	if !strings.HasPrefix(id, goodKey) || t.Signed.SessionToken != sessionTokenOf(id) {
		return keyservice.Maker{}, &keyservice.Unknown{Code: "InvalidClientTokenId", Reason: "there is no such key"}
	}
	if t.Verify(sigv4.Derive(secretOf(id), t.Signed.Scope), cluster) != nil {
		return keyservice.Maker{}, &keyservice.Unknown{Rule: "signature", Code: sigv4.CodeMismatch, Reason: "a signature that this key did not make"}
	}
	return keyservice.Maker{ARN: sessionARNOf(id), Account: account, UserID: userIDOf(id), SessionName: sessionNameOf(id), ValidUntil: t.Expires}, nil
}

func (backend) Refused(context.Context, string, keyservice.Refused) error { return nil }

func (backend) RoleCredentials(context.Context, string) (keyservice.RoleCredentials, error) {
	return keyservice.RoleCredentials{}, &keyservice.Unknown{Code: "NoSuchEntity", Reason: "there are no instances"}
}

func (backend) Changes() keyservice.Feed { return quiet{} }

type quiet struct{}

func (quiet) Ready() <-chan struct{}  { return nil }
func (quiet) Take() keyservice.Change { return keyservice.Change{} }
func (quiet) Close()                  {}
