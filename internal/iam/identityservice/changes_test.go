// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"muster.dev/muster/internal/iam/caller"
	own "muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
)

// socket serves the world to authenticators, and gives a client that follows the changes.
func socket(t *testing.T, w *world, told func(keyservice.Change)) *keyservice.Client {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "m") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	authority := keyservicetest.New(t)
	server, err := keyservice.NewServer(keyservice.ServerConfig{
		Backend: w.service, Credential: keyservice.Credential(authority.Account(t)), Clusters: func(who caller.Caller) bool { return who.Cluster == demo }, Logger: slog.New(slog.DiscardHandler), Heartbeat: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "identity.sock")
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := server.Listen(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	client, err := keyservice.NewClient(keyservice.ClientConfig{
		Socket: path, Credential: keyservice.Credential(authority.Caller(t, caller.Authenticator(demo, "0A1B"))), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	running := make(chan error, 3)
	go func() { running <- server.Serve(ctx, listener) }()
	go func() { w.service.Run(ctx); running <- nil }()
	go func() { client.Watch(ctx, told); running <- nil }()
	t.Cleanup(func() {
		cancel()
		for range 3 {
			if err := <-running; err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
		client.Close()
	})
	return client
}

func TestAuthenticatorsAreToldOfChanges(t *testing.T) {
	w := newWorld(t, nil)
	alice := w.user("alice")
	w.instances.set(node, instance{"muster-node", nodeName, demo})
	changes := make(chan keyservice.Change, 1024)
	client := socket(t, w, func(c keyservice.Change) { changes <- c })
	await := func(what string, wanted func(keyservice.Change) bool) {
		t.Helper()
		timeout := time.After(time.Minute)
		for {
			select {
			case c := <-changes:
				if wanted(c) {
					return
				}
			case <-timeout:
				t.Fatalf("nothing was told: %s", what)
			}
		}
	}
	await("the beginning", func(c keyservice.Change) bool { return c.All })
	ask := func(s signer) error {
		host, query := w.sign(s, wish{})
		_, err := client.Verify(t.Context(), keyservice.Question{Cluster: demo, Host: host, Query: query})
		return err
	}
	if err := ask(alice); err != nil {
		t.Fatal(err)
	}
	credentials, err := w.service.RoleCredentials(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(signer{credentials.AccessKeyID, credentials.SecretAccessKey, credentials.SessionToken}); err != nil {
		t.Fatal(err)
	}
	for len(changes) > 0 {
		<-changes
	}
	admin := w.iam(w.admin())
	if _, err := admin.UpdateAccessKey(t.Context(), &iam.UpdateAccessKeyInput{UserName: aws.String("alice"), AccessKeyId: &alice.id, Status: iamtypes.StatusTypeInactive}); err != nil {
		t.Fatal(err)
	}
	await("a key that was switched off", func(c keyservice.Change) bool { // machines stay let in
		return !c.All && c.Sessions && len(c.AccessKeyIDs) == 1 && c.AccessKeyIDs[0] == alice.id
	})
	var no *keyservice.Unknown
	if err := ask(alice); !errors.As(err, &no) || no.Code != "InvalidClientTokenId" {
		t.Error(err)
	}
	w.role("app", trusting("Service", "ec2.amazonaws.com"))
	role := func(c keyservice.Change) bool { return len(c.UserIDs) == 1 && own.IsID(own.RolePrefix, c.UserIDs[0]) }
	await("a role that came", role)
	for len(changes) > 0 {
		<-changes
	}
	if _, err := admin.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("app"), PolicyDocument: aws.String(trusting("AWS", account))}); err != nil {
		t.Fatal(err)
	}
	await("a role that instances may not have any more", role)
	if _, err := admin.RemoveRoleFromInstanceProfile(t.Context(), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String("muster-node"), RoleName: aws.String("muster-node")}); err != nil {
		t.Fatal(err)
	}
	await("a profile without its role", func(c keyservice.Change) bool { return len(c.UserIDs) == 1 })
	w.instances.set(node, instance{})
	w.service.InstancesChanged(node)
	await("an instance that is gone", func(c keyservice.Change) bool { return len(c.Instances) == 1 && c.Instances[0] == node })
	if !client.Live() {
		t.Error("the stream is not alive")
	}
}
