// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// oneMachine is an instance of the first node role.
type oneMachine struct{}

func (oneMachine) Lookup(id string) (identityservice.Instance, bool) {
	return identityservice.Instance{Profile: "muster-node", PrivateDNSName: "ip-172-31-0-5.eu-west-1.compute.internal"}, id == "i-0123456789abcdef0"
}

// serveKeys runs an identity service of that store on the socket, until what it returns is called.
func serveKeys(t *testing.T, dir statedir.Dir, store identityservice.Store, log *slog.Logger) (end func()) {
	t.Helper()
	sealer, err := identityservice.OpenSealer(dir.SessionKeys(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	service, err := identityservice.New(identityservice.Config{Store: store, Sealer: sealer, Instances: oneMachine{}, Region: "eu-west-1", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	pki := authority.NewAccountStore(dir.PKI())
	server, err := keyservice.NewServer(keyservice.ServerConfig{
		Backend: service, Credential: keyservice.Credential{CA: pki.AuthorityPath(authority.Account), File: pki.Path(component.CredentialAccount)},
		Clusters: func(caller.Caller) bool { return false }, Credentials: true, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := server.Listen(ctx, dir.MetadataSocket())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{}, 2)
	go func() { service.Run(ctx); ended <- struct{}{} }()
	go func() { _ = server.Serve(ctx, listener); ended <- struct{}{} }()
	return func() {
		cancel()
		<-ended
		<-ended
	}
}

// A role that is deleted while the identity service is away is heard of when it is back: instance metadata shows nobody
// credentials then that are good for nothing.
func TestARoleThatGoesDuringAnOutageIsNotShownAfterIt(t *testing.T) {
	dir, err := statedir.Open(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	log, store := slog.New(slog.DiscardHandler), identityservicetest.NewMemory()
	if _, err := identityservice.First(t.Context(), store, identityservice.DefaultAccount, dir.IAMCredentials(), time.Now()); err != nil {
		t.Fatal(err)
	}
	commonName, organizations := caller.Metadata().Subject()
	if _, err := authority.NewAccountStore(dir.PKI()).Ensure([]authority.Credential{
		{Name: component.CredentialAccount, Authority: authority.Account, CommonName: "muster:account", DNSNames: []string{caller.ServerName}},
		{Name: component.CredentialAccountMetadata, Authority: authority.Account, CommonName: commonName, Organizations: organizations, Client: true},
	}, time.Now()); err != nil {
		t.Fatal(err)
	}
	end := serveKeys(t, dir, store, log)
	roles, err := newRoles(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	const machine = "i-0123456789abcdef0"
	shown := func() (string, error) {
		role, err := roles.Role(t.Context(), machine)
		return role.AccessKeyID, err
	}
	first := ""
	waitUntil(t, "the machine has credentials", func() bool { first, err = shown(); return err == nil })

	end()
	if got, err := shown(); err != nil || got != first { // nobody can tell that they are not good any more
		t.Errorf("while the service is away: %q, %v", got, err)
	}
	before, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	role, ok := before.Role(identityservice.DefaultAccount, "muster-node")
	if !ok {
		t.Fatal("there is no first node role")
	}
	if err := store.Delete(t.Context(), before, role); err != nil {
		t.Fatal(err)
	}
	defer serveKeys(t, dir, store, log)()
	waitUntil(t, "the role is not shown any more", func() bool { _, err := shown(); return errors.Is(err, imds.ErrNotFound) })
}

// waitUntil polls what takes goroutines of other packages.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}
