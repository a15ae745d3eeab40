// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/issuerkeys"
	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/podwatch"
	"muster.dev/muster/internal/plane/signerclient"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/statedir"
)

func TestIssuers(t *testing.T) {
	const own = "https://127.9.8.7/id/0123456789ABCDEF0123456789ABCDEF"
	ring, err := tokenkeys.New(time.Now(), tokenkeys.RS256, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var untold error
	known, err := tokenkeys.NewIssuing(own, func() (tokenkeys.Ring, error) { return ring, untold })
	if err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientset(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "app", UID: "s-1"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "p-1"}, Spec: corev1.PodSpec{ServiceAccountName: "app"}},
	)
	source := Cluster{Specs: component.Config{Issuer: component.Issuer{URL: own}}, Issuing: known, Pods: podwatch.New(api, nil)}
	issuers := Issuers{Fetcher: issuerkeys.New(issuerkeys.Config{}), Clusters: Clusters{
		State: statedir.Dir(t.TempDir()), Running: func() []Cluster { return []Cluster{source} },
	}}
	bound := webidentity.Bound{Namespace: "a", Pod: "web", PodUID: "p-1", ServiceAccount: "app", ServiceAccountUID: "s-1", Node: "n", NodeUID: "n-1"}
	if err := issuers.Exists(own, bound, time.Now()); err == nil || errors.Is(err, identityservice.ErrGone) {
		t.Errorf("before anything is known: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); source.Pods.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	for deadline := time.Now().Add(time.Minute); !source.Pods.HasSynced(); {
		if time.Now().After(deadline) {
			t.Fatal("nothing is watched")
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // it polls
	}
	if err := issuers.Exists(own, bound, time.Now()); err != nil {
		t.Error(err)
	}
	other := bound
	other.PodUID = "p-2"
	if err := issuers.Exists(own, other, time.Time{}); !errors.Is(err, identityservice.ErrGone) {
		t.Errorf("another pod of its name: %v", err)
	}
	if err := issuers.Exists("https://127.9.8.7/id/FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", bound, time.Now()); err == nil || errors.Is(err, identityservice.ErrGone) {
		t.Errorf("of a cluster that does not run: %v", err)
	}
	first := ring.Signer(time.Now()).ID
	if got, isOwn, err := issuers.Keys(t.Context(), own, "2"); err != nil || !isOwn || !got.Has(first) {
		t.Errorf("%v, %v, %v", got.IDs(), isOwn, err)
	}
	// A key that is published is known to STS before it signs.
	if ring, err = ring.Rotate(time.Now(), time.Hour, rand.Reader); err != nil {
		t.Fatal(err)
	}
	if got, _, err := issuers.Keys(t.Context(), own, "2"); err != nil || len(got.IDs()) != 2 || !got.Has(first) {
		t.Errorf("after another key was published: %v, %v", got.IDs(), err)
	}
	// Of keys that are not known nobody's token is believed.
	untold = signerclient.ErrUnknown
	if got, _, err := issuers.Keys(t.Context(), own, first); err == nil {
		t.Errorf("of keys that are not known: %v", got.IDs())
	}
	// Another cluster's address is one of this host: nobody who listens there is asked.
	if _, isOwn, err := issuers.Keys(t.Context(), "https://127.9.8.7/id/FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "1"); err == nil || isOwn {
		t.Errorf("%v, %v", isOwn, err)
	}
}

// Whoever answers at the address of a cluster's issuer must not be asked for its keys: not by another spelling of its
// URL, and not while the cluster does not run.
func TestIssuersOfClustersAreNeverFetched(t *testing.T) {
	state := statedir.Dir(t.TempDir())
	create := func(name string) (statedir.Cluster, string) {
		dir := state.Cluster(name)
		if err := os.MkdirAll(string(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		i, err := issuer.Ensure(dir.Issuer(), issuer.Endpoint{Host: "oidc.example.com", Port: 443}, false, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return dir, i.String()
	}
	_, running := create("runs")
	begins, beginning := create("begins")
	_, notHosted := create("later")
	source := Cluster{Specs: component.Config{Issuer: component.Issuer{URL: running}}, Pods: &podwatch.Watch{}}
	s := Clusters{State: state, Running: func() []Cluster { return []Cluster{{}, source} }}

	const host = "https://oidc.example.com"
	for _, own := range []string{running, running + "/", strings.Replace(running, host, "https://OIDC.Example.com", 1), strings.Replace(running, host, host+":443", 1)} {
		if got, err := s.ofIssuer(own); err != nil || got.Pods != source.Pods {
			t.Errorf("%s: %v", own, err)
		}
	}
	fetches := 0
	issuers := Issuers{s, issuerkeys.New(issuerkeys.Config{Refuse: func(netip.Addr) error { fetches++; return errors.New("a test refuses it") }})}
	for _, own := range []string{beginning, beginning + "/", notHosted, notHosted + "/"} {
		if _, isOwn, err := issuers.Keys(t.Context(), own, "1"); err == nil || !isOwn || !strings.Contains(err.Error(), "does not run yet") {
			t.Errorf("%s: %v, %v", own, isOwn, err)
		}
		if err := issuers.Exists(own, webidentity.Bound{}, time.Now()); err == nil || errors.Is(err, identityservice.ErrGone) {
			t.Errorf("%s: %v", own, err)
		}
	}
	if fetches > 0 {
		t.Errorf("%d fetches", fetches)
	}
	if _, err := s.ofIssuer("https://gitlab.example.com"); !errors.Is(err, errIssuerUnknown) {
		t.Error(err)
	}
	if err := os.WriteFile(begins.Issuer(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ofIssuer("https://gitlab.example.com"); err == nil || errors.Is(err, errIssuerUnknown) {
		t.Errorf("whose it is cannot be told: %v", err)
	}
}
