// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

const hybrid = "arn:aws:iam::111122223333:role/hybrid"

func trustingHybrid(t testing.TB) []identity.TrustedSessions {
	t.Helper()
	role, err := arn.Parse(hybrid)
	if err != nil {
		t.Fatal(err)
	}
	return []identity.TrustedSessions{{Role: role, Names: []string{"mi-*", "*.internal"}}}
}

// ownKeys is muster's identity service, which knows which sessions are an instance's.
type ownKeys struct {
	keys      []ststest.Key
	instances map[string]*identity.Instance // by access key
}

func (o ownKeys) Verify(_ context.Context, q keyservice.Question) (keyservice.Maker, error) {
	token, err := ststoken.Read(q.Host, q.Query, q.Cluster, time.Now())
	if err != nil {
		return keyservice.Maker{}, err
	}
	i := slices.IndexFunc(o.keys, func(k ststest.Key) bool { return k.ID == token.Signed.AccessKeyID })
	if i < 0 || token.Verify(sigv4.Derive(o.keys[i].Secret, token.Signed.Scope), q.Cluster) != nil {
		return keyservice.Maker{}, &keyservice.Unknown{Code: "InvalidClientTokenId", Reason: "there is no such access key"}
	}
	k := o.keys[i]
	user, session, _ := strings.Cut(k.UserID, ":")
	return keyservice.Maker{ARN: k.ARN, Account: k.Account, UserID: user, SessionName: session, Instance: o.instances[k.ID], ValidUntil: time.Now().Add(time.Hour)}, nil
}

// remoteSTS is AWS's, with an EC2 in which the one instance runs.
func remoteSTS(t *testing.T, keys []ststest.Key, instance identity.Instance) tokenverify.Verifier {
	t.Helper()
	server := ststest.New(t, keys...)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	remote, err := tokenverify.NewRemote(tokenverify.RemoteConfig{ClusterID: cluster, Endpoints: server.Endpoints(), RootCAs: roots, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.Close)
	proved, err := tokenverify.NewInstances(remote, tokenverify.InstancesConfig{Describe: func(_ context.Context, ids []string) (map[string]tokenverify.Instance, error) {
		if !slices.Contains(ids, instance.ID) {
			return nil, nil
		}
		return map[string]tokenverify.Instance{instance.ID: {ID: instance.ID, PrivateDNSName: instance.PrivateDNSName, Live: true, Profile: "arn:aws:iam::111122223333:instance-profile/hybrid"}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return proved
}

// TestSessionsWhoseNamesAreTrusted asks as an API server does, with both kinds of STS behind.
func TestSessionsWhoseNamesAreTrusted(t *testing.T) {
	instance := identity.Instance{ID: "i-0123456789abcdef0", PrivateDNSName: "ip-10-0-0-1.internal"}
	keys := []ststest.Key{
		ststest.Session("hybrid", "mi-0123456789abcdef0", 1), ststest.Session("hybrid", "anna", 2), ststest.Session("hybrid", instance.ID, 3), ststest.Session("hybrid", "i-0123456789abcdef1", 4),
		ststest.Session("hybrid", instance.PrivateDNSName, 5), ststest.Session("hybrid", "MI-0123456789abcdef0", 6), ststest.Session("other", "mi-0123456789abcdef0", 7),
		ststest.Session("hybrid", "node.internal", 8),
	}
	own, err := tokenverify.NewOwn(tokenverify.OwnConfig{ClusterID: cluster, Account: ownKeys{keys, map[string]*identity.Instance{keys[2].ID: &instance}}, Live: func() bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	entries := []identity.AccessEntry{{Name: "hybrid", PrincipalARN: hybrid, Type: identity.TypeHybridLinux}}
	other := identity.Mapping{
		Source: identity.SourceAWSAuth, Entry: "mapRoles[0]", Kind: identity.KindRole, ARN: "arn:aws:iam::111122223333:role/other",
		Username: "system:node:{{SessionName}}", Groups: []string{"system:nodes"},
	}
	trusting, _ := identity.NewTable(identity.Options{Trusted: trustingHybrid(t)}, entries, []identity.Mapping{other})
	without, _ := identity.NewTable(identity.Options{}, entries, []identity.Mapping{other})
	for name, verifier := range map[string]tokenverify.Verifier{"remote": remoteSTS(t, keys, instance), "own": own} {
		for _, tc := range []struct {
			key           ststest.Key
			want, without string // the user's name, or the rule that refuses
			logged        string
		}{
			{keys[0], "system:node:mi-0123456789abcdef0", "instance", "rule=trusted-name"},
			{keys[1], "trusted-name", "instance", "the sessions of " + hybrid + " that are named mi-*, *.internal, and this one is named"},
			{keys[2], "system:node:" + instance.ID, "system:node:" + instance.ID, "instance=" + instance.ID},
			{keys[3], "instance", "instance", "is not proven to be an instance's"}, // there is no such instance
			{keys[4], "instance", "instance", "is not proven to be an instance's"}, // it is another's node
			{keys[5], "trusted-name", "instance", "cannot be a node's name"},
			{keys[6], "instance", "instance", "mapping.trustedSessionNames"},
			{keys[7], "system:node:node.internal", "instance", "rule=trusted-name"},
		} {
			t.Run(name+" "+strings.TrimPrefix(tc.key.ARN, "arn:aws:sts::111122223333:assumed-role/"), func(t *testing.T) {
				w := newWorld(t, func(c *Config) { c.Verifier = verifier })
				ask := func(table *identity.Table) string {
					w.table.Store(table)
					answer := w.post(tokenReview(t, "authentication.k8s.io/v1", ststest.Token(t, tc.key, cluster, w.start)))
					if answer.Code == http.StatusForbidden {
						return ReadReason(answer.Header()).Rule
					}
					var got struct {
						Status struct{ User struct{ Username string } }
					}
					if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
						t.Fatalf("%d %s: %v", answer.Code, answer.Body.String(), err)
					}
					return got.Status.User.Username
				}
				if got := ask(&without); got != tc.without {
					t.Errorf("while nothing is trusted: %s, want %s", got, tc.without)
				}
				if strings.Contains(w.logs.String(), "trusted-name") {
					t.Errorf("a line says that it is trusted: %s", w.logs.String())
				}
				if got := ask(&trusting); got != tc.want {
					t.Errorf("%s, want %s", got, tc.want)
				}
				if got := w.logs.String(); !strings.Contains(got, tc.logged) {
					t.Errorf("no %q in %s", tc.logged, got)
				}
				counted := 0.0
				if strings.HasPrefix(tc.logged, "rule=") {
					counted = 1
				}
				if got := counterOf(t, w, "muster_authenticator_trusted_names_total"); got != counted {
					t.Errorf("%v are counted as trusted, want %v", got, counted)
				}
			})
		}
	}
}

// counterOf is the value of a counter without labels.
func counterOf(t *testing.T, w *world, name string) float64 {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

func TestAnEntrySaysWhetherItsSessionsAreTrusted(t *testing.T) {
	s := newStatuses()
	kind := func(e *accessv1alpha1.AccessEntry) { e.Spec.Type = accessv1alpha1.TypeHybridLinux }
	s.addEntry("hybrid", hybrid, 1, kind)
	s.addEntry("other", "arn:aws:iam::111122223333:role/other", 1, kind)
	s.keepingWith(t, identity.Options{Trusted: trustingHybrid(t)})
	for name, begin := range map[string]string{
		"hybrid": "True Mapped: " + hybrid + " is mapped by this entry; nodes are named after the sessions of " + hybrid + ": the authenticator's configuration trusts the names mi-*, *.internal",
		"other":  "True MappedInPart: spec.type: names nodes after their sessions, and each principal that may assume the role chooses the name: only instances' own sessions are let in, hybrid nodes and those of AWS's Fargate are refused; if a service",
	} {
		until(t, name+" says "+begin, func() bool { return strings.HasPrefix(s.accepted(name), begin) })
	}
}
