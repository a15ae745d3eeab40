// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// rounds is how often every certificate is to be replaced.
const rounds = 2

// TestRoundsOfRotation gives kubelets certificates of ten minutes, the shortest that there are, and watches them rotate
// by themselves: every client and serving certificate twice. Meanwhile everything that depends on them is used without
// a pause, and nothing of it may fail: requests with the nodes' own certificates, kubelets' own requests, logs and
// exec. A certificate of ten minutes begins five minutes in the past, and is replaced from 5.5 to 8.5 minutes after it
// was issued, so two rounds take up to 17 minutes.
//
//story:about node/nodecerts certificates
func TestRoundsOfRotation(t *testing.T) {
	i := newInstallation(t)
	i.up(shortLived)
	i.ready()
	i.apply(workload)
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=120s")
	i.eventually("kubelets serve", func() error {
		for _, pod := range i.pods() {
			if _, err := i.kubectl("logs", pod); err != nil {
				return err
			}
		}
		return nil
	})
	links, err := filepath.Glob(filepath.Join(i.dir.Machines(), "*", "root/var/lib/kubelet/pki/kubelet-*-current.pem"))
	if err != nil || len(links) != 4 {
		t.Fatalf("there are %d certificates of two nodes (%v)", len(links), err)
	}
	w := i.watchHandshakes()
	seen := map[string][]rotatedAt{}
	took := i.upstream(roundsOfRenewal, fmt.Sprintf("every certificate was replaced %d times", rounds), func() error {
		var missing error
		for _, link := range links {
			if err := noteRotation(seen, link); err != nil {
				return err
			}
			if n := len(seen[link]) - 1; n < rounds {
				missing = fmt.Errorf("%s was replaced %d times", link, n)
			}
		}
		return missing
	})
	failures, counts := w.stop()
	t.Logf("%d rounds took %s; meanwhile: %v", rounds, took.Round(time.Second), counts)
	for _, failure := range failures {
		t.Error(failure)
	}
	for _, what := range []string{"node's own certificate", "kubelet through the API server", "lease is fresh", "logs", "exec", "machines' logs"} {
		if counts[what] < 20 {
			t.Errorf("%s: was tried %d times only", what, counts[what])
		}
	}
	for link, all := range seen {
		for n := 1; n < len(all); n++ {
			// When it was seen is late by a moment of looking; a request that found the controller busy by a few
			// seconds more.
			from, until := all[n-1].from, all[n-1].until.Add(15*time.Second)
			if at := all[n].seen; at.Before(from) || at.After(until) {
				t.Errorf("%s: replaced at %s, not between %s and %s", link, at, from, until)
			}
		}
	}
	for _, machine := range machinesOf(links) {
		if out, talk, err := i.try("node", "certs", machine); err != nil {
			t.Errorf("in the end: %v\n%s%s", err, out, talk)
		}
	}
}

// rotatedAt is one certificate of a row.
type rotatedAt struct {
	serial            string
	seen, from, until time.Time
}

// noteRotation looks at a certificate and notes it if it is another than before. While the kubelet replaces the link
// there is none.
func noteRotation(seen map[string][]rotatedAt, link string) error {
	pair, err := kubeletPair(link)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	serial := fmt.Sprintf("%x", pair.Leaf.SerialNumber)
	all := seen[link]
	if len(all) > 0 && all[len(all)-1].serial == serial {
		return nil
	}
	life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	seen[link] = append(all, rotatedAt{
		serial: serial, seen: time.Now(), from: pair.Leaf.NotBefore.Add(life * 7 / 10), until: pair.Leaf.NotBefore.Add(life * 9 / 10),
	})
	return nil
}

// machinesOf are the instance ids in the paths of their disks, each once.
func machinesOf(links []string) []string {
	var ids []string
	for _, link := range links {
		id := filepath.Base(link[:len(link)-len("/root/var/lib/kubelet/pki/")-len(filepath.Base(link))])
		if len(ids) == 0 || ids[len(ids)-1] != id {
			ids = append(ids, id)
		}
	}
	return ids
}
