// SPDX-License-Identifier: Apache-2.0

package tokensigner

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/client-go/util/keyutil"
	externaljwt "k8s.io/externaljwt/apis/v1"

	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/socketdir"
)

const (
	maxMessage = 128 << 10
	grace      = time.Second
	// lookInterval is how often the keys are looked at, for what is not needed any more.
	lookInterval = time.Minute
)

// Config configures the signer of one cluster.
type Config struct {
	// Issuer is the claim iss of the cluster's tokens.
	Issuer string
	// Keys is the directory of a ring of keys, which no other program reads (package tokenkeys).
	Keys string
	// LegacyKey is the file with the key of tokens in Secrets.
	LegacyKey string
	// Socket is made in a directory that its owner alone can use.
	Socket string
	// Address is where the account is answered, by TLS: host and port.
	Address string
	// Credential is the file with the certificate and the key of that, and ClientCA that of the authority of its
	// clients.
	Credential, ClientCA string
	// Client is the common name of the only client that is answered.
	Client string
	Log    *slog.Logger
}

// Run serves until the context ends. /readyz on the same socket says whether there are keys.
func Run(ctx context.Context, c Config) error {
	if c.Issuer == "" || c.Keys == "" || c.LegacyKey == "" || c.Socket == "" || c.Client == "" || c.ClientCA == "" || c.Log == nil {
		return errors.New("the token signer needs an issuer, its keys, a socket, a client, the client's authority and a log")
	}
	legacy, err := readLegacy(c.LegacyKey)
	if err != nil {
		return err
	}
	keys, err := tokenkeys.Open(c.Keys, time.Now())
	if err != nil {
		return err
	}
	s := &signer{issuer: c.Issuer, keys: keys, now: time.Now}
	if s.legacy, err = legacyKey(legacy); err != nil {
		return err
	}
	if _, err := s.keys.Ring(); err != nil {
		return err
	}
	set := httpserve.Set{Logger: c.Log, Grace: grace}
	defer set.Close()
	// The port comes first: a signer that has it serves already, and its socket would be replaced.
	if err := serveAccount(ctx, &set, c, keys); err != nil {
		return err
	}
	listener, err := socketdir.Listen(ctx, c.Socket)
	if err != nil {
		return fmt.Errorf("making the socket of the token signer: %w", err)
	}
	server := set.Handle(listener, handler(s))
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)                // health
	server.Protocols.SetUnencryptedHTTP2(true)     // gRPC
	server.ReadTimeout, server.WriteTimeout = 0, 0 // they would end a connection of gRPC, which is kept
	server.IdleTimeout = 0
	c.Log.Info("signing service account tokens", "issuer", c.Issuer)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() { keep(ctx, keys, c.Log, cancel) })
	return set.Serve(ctx)
}

// serveAccount opens the port of the account.
func serveAccount(ctx context.Context, set *httpserve.Set, c Config, keys *tokenkeys.Keeper) error {
	files, err := httpserve.ReadFiles("the account's questions", c.Credential, c.Credential, c.ClientCA, c.Log)
	if err != nil {
		return err
	}
	port, err := set.Open(ctx, "the account's questions", c.Address)
	if err != nil {
		return err
	}
	set.Handle(tls.NewListener(port, files.Config()), httpserve.Only(c.Client, api{keys: keys, now: time.Now, log: c.Log}.handler()))
	return nil
}

// keep takes out of the keys what is not needed any more, until the context ends. Keys that this user may not read end
// the program: somebody has restored them as another one, and they are given to it when it is started again.
func keep(ctx context.Context, keys *tokenkeys.Keeper, log *slog.Logger, end func(error)) {
	for ctx.Err() == nil {
		switch changed, err := keys.Prune(time.Now()); {
		case errors.Is(err, fs.ErrPermission):
			end(err)
		case err != nil:
			log.Error("the keys of service account tokens cannot be looked at", "error", err)
		case changed:
			log.Info("removed what is not needed any more of the keys of service account tokens")
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookInterval):
		}
	}
}

// handler answers gRPC and /readyz.
func handler(s *signer) http.Handler {
	calls := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	externaljwt.RegisterExternalJWTSignerServer(calls, s)
	mux := http.NewServeMux()
	httpserve.Health(mux, func() error {
		_, err := s.keys.Ring()
		return err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			calls.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func readLegacy(path string) (*ecdsa.PrivateKey, error) {
	parsed, err := keyutil.PrivateKeyFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key of tokens in Secrets: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("reading the key of tokens in Secrets: %s is of type %T and must be an EC key", path, parsed)
	}
	return key, nil
}
