// SPDX-License-Identifier: Apache-2.0

package tokensigner

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
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
)

// Config configures the signer of one cluster.
type Config struct {
	// Issuer is the claim iss of the cluster's tokens.
	Issuer string
	// Keys is the file of a ring of keys (package tokenkeys).
	Keys string
	// LegacyKey is the file with the key of tokens in Secrets.
	LegacyKey string
	// Socket is made in a directory that its owner alone can use.
	Socket string
	Log    *slog.Logger
}

// Run serves until the context ends. /readyz on the same socket says whether there are keys.
func Run(ctx context.Context, c Config) error {
	if c.Issuer == "" || c.Keys == "" || c.LegacyKey == "" || c.Socket == "" || c.Log == nil {
		return errors.New("the token signer needs an issuer, the files of its keys, a socket and a log")
	}
	legacy, err := readLegacy(c.LegacyKey)
	if err != nil {
		return err
	}
	s := &signer{issuer: c.Issuer, keys: tokenkeys.NewSource(c.Keys), now: time.Now}
	if s.legacy, err = legacyKey(legacy); err != nil {
		return err
	}
	if _, err := s.keys.Ring(); err != nil {
		return err
	}
	listener, err := socketdir.Listen(ctx, c.Socket)
	if err != nil {
		return fmt.Errorf("making the socket of the token signer: %w", err)
	}
	set := httpserve.Set{Logger: c.Log, Grace: grace}
	server := set.Handle(listener, handler(s))
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)                // health
	server.Protocols.SetUnencryptedHTTP2(true)     // gRPC
	server.ReadTimeout, server.WriteTimeout = 0, 0 // they would end a connection of gRPC, which is kept
	server.IdleTimeout = 0
	c.Log.Info("signing service account tokens", "issuer", c.Issuer)
	return set.Serve(ctx)
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
