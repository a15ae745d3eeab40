// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
	"muster.dev/muster/internal/platform/statedir"
)

// toldRefusals are the refusals that an identity service told instances of.
type toldRefusals struct {
	mu  sync.Mutex
	all []keyservice.Refused
	of  []string
}

func (r *toldRefusals) tell(cluster, instance string, refused keyservice.Refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.of = append(r.all, refused), append(r.of, cluster+"/"+instance)
}

func (r *toldRefusals) take() (of []string, all []keyservice.Refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, all = r.of, r.all
	r.of, r.all = nil, nil
	return of, all
}

// An authenticator and an identity service as they run beside a cluster: what a machine is refused for comes to the
// machine, and what a stranger makes up in its name does not.
func TestWhatAMachineIsRefusedForComesToTheMachine(t *testing.T) {
	path, err := os.MkdirTemp("", "mr-") //nolint:usetesting // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	dir, err := statedir.Open(filepath.Join(path, "s"))
	if err != nil {
		t.Fatal(err)
	}
	log, store := slog.New(slog.DiscardHandler), identityservicetest.NewMemory()
	if _, err := identityservice.First(t.Context(), store, identityservice.DefaultAccount, dir.IAMCredentials(), time.Now()); err != nil {
		t.Fatal(err)
	}
	sealer, err := identityservice.OpenSealer(dir.SessionKeys(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var heard toldRefusals
	service, err := identityservice.New(identityservice.Config{Store: store, Sealer: sealer, Instances: refusedMachine{"demo"}, Region: "eu-west-1", Log: log, Refused: heard.tell})
	if err != nil {
		t.Fatal(err)
	}
	authority := keyservicetest.New(t)
	server, err := keyservice.NewServer(keyservice.ServerConfig{
		Backend: service, Credential: keyservice.Credential(authority.Account(t)), Clusters: func(who caller.Caller) bool { return who.Cluster == "demo" }, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	listener, err := server.Listen(ctx, dir.IdentitySocket())
	if err != nil {
		t.Fatal(err)
	}
	go service.Run(ctx)
	go func() { _ = server.Serve(ctx, listener) }()

	const machine = "i-0123456789abcdef0"
	credentials, err := service.RoleCredentials(t.Context(), machine)
	if err != nil {
		t.Fatal(err)
	}
	key := ststest.Key{ID: credentials.AccessKeyID, Secret: credentials.SecretAccessKey, Session: credentials.SessionToken}
	mappings := filepath.Join(t.TempDir(), "mappings.yaml")
	if err := os.WriteFile(mappings, []byte("mapRoles:\n- {rolearn: 'arn:aws:iam::000000000000:role/muster-node', username: 'system:node:{{EC2PrivateDNSName}}', groups: [system:nodes]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, files := authenticatorConfigOf(t, musterBackend(dir.IdentitySocket(), authority.Caller(t, caller.Authenticator("demo", "0A1B")))+"mapping: {file: "+mappings+", fileOnly: true}\n")
	s := runningAuthenticator(t, c)
	eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })

	now := time.Now()
	review := func(token string, want int) {
		t.Helper()
		if status, name := reviewOf(t, s, files, token); status != want {
			t.Fatalf("the authenticator says %d %s, want %d", status, name, want)
		}
	}
	region := "eu-west-1"
	review(ststest.TokenFor(t, key, "demo", "sts.eu-west-1.amazonaws.com", "eu-west-1", now), http.StatusOK)

	// Strangers. Each has an access key id of its own choice for once, so that no bound on one key hides it.
	stranger := key
	stranger.Secret, stranger.Session = "made up", "made up"
	review(ststest.TokenFor(t, stranger, "demo", "sts.eu-west-1.amazonaws.com", "eu-west-1", now), http.StatusForbidden)
	borrowed := key
	borrowed.ID, borrowed.Secret = "ASIAAAAAAAAAAAAAAAAA", "made up"
	review(ststest.TokenFor(t, borrowed, "demo", "sts.eu-west-1.amazonaws.com", "eu-west-1", now), http.StatusForbidden)
	long := ststest.Key{ID: "AKIAAAAAAAAAAAAAAAAA", Secret: "made up"}
	review(ststest.TokenFor(t, long, "demo", "sts.eu-west-1.amazonaws.com", "eu-west-1", now), http.StatusForbidden)

	for _, mistake := range []struct{ name, token, rule, saw string }{
		{"another host", ststest.TokenFor(t, key, "demo", "sts.example.internal", region, now), "host", "sts.example.internal"},
	} {
		// The stranger's report names the same access key: one that is not the machine's must not use up the bound for
		// good.
		eventually(t, mistake.name+" is told", func() bool {
			review(mistake.token, http.StatusForbidden)
			of, all := heard.take()
			if len(of) == 0 {
				return false
			}
			if of[0] != "demo/"+machine || all[0].Rule != mistake.rule || !strings.Contains(all[0].Saw, mistake.saw) {
				t.Errorf("%s: %v was told %+v %s", mistake.name, of, all[0], all[0].Saw)
			}
			return true
		})
	}
	eventually(t, "another cluster's name is told", func() bool {
		review(ststest.TokenFor(t, key, "another", "sts.eu-west-1.amazonaws.com", "eu-west-1", now), http.StatusForbidden)
		of, all := heard.take()
		if len(of) == 0 {
			return false
		}
		if of[0] != "demo/"+machine || all[0].Rule != "signature/SignatureDoesNotMatch" || !strings.Contains(all[0].Saw, `for cluster "demo"`) {
			t.Errorf("%v was told %+v %s", of, all[0], all[0].Saw)
		}
		return true
	})
}

// musterBackend is the part of the file that says where muster's identity service is.
func musterBackend(socket string, credential keyservicetest.Credential) string {
	return "backend: muster\nmuster: {socket: " + socket + ", ca: " + credential.CA + ", credential: " + credential.File + "}\n"
}

// refusedMachine is an instance of the first node role.
type refusedMachine struct{ cluster string }

func (m refusedMachine) Lookup(id string) (identityservice.Instance, bool) {
	return identityservice.Instance{Profile: "muster-node", PrivateDNSName: "ip-192-168-64-11.eu-west-1.compute.internal", Cluster: m.cluster}, id == "i-0123456789abcdef0"
}
