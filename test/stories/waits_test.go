// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/plane/runner"
)

// patience is how long a story waits for an effect that comes at some time. It is not a promise: a slow or busy machine
// never fails a story by it.
const patience = 5 * time.Minute

// upstreamWait is a wait whose length an upstream program or the step itself gives, so that patience is too short for
// it.
type upstreamWait struct {
	limit  time.Duration
	source string // whose length it is
}

var (
	// A kubelet asks for a certificate every few seconds, and ends after 15 minutes without one.
	kubeletGivesUp = upstreamWait{17 * time.Minute, "pkg/kubelet/certificate/bootstrap: WaitForCertificate ends after 15 minutes"}
	// Muster's own rotation keeps each phase until kubelets, which look at files every minute, and API servers have
	// taken it.
	authorityRotates = upstreamWait{8 * time.Minute, "docs/ca-rotation.md: phases follow the reloads of kubelets and API servers, a minute or two each"}
	// Certificates of some minutes, renewed by the kubelet at 70 to 90 % of their lives, round after round.
	roundsOfRenewal = upstreamWait{20 * time.Minute, "client-go util/certificate: a certificate is renewed after 70 to 90 % of its life"}
)

// eventually repeats a question until it is answered without an error, and says how long that took. It fails after
// [patience].
func (i *installation) eventually(what string, ask func() error) time.Duration {
	i.t.Helper()
	return i.wait(what, patience, ask)
}

// upstream is eventually for a wait that is longer than [patience] by its nature.
func (i *installation) upstream(wait upstreamWait, what string, ask func() error) time.Duration {
	i.t.Helper()
	return i.wait(what, wait.limit, ask)
}

func (i *installation) wait(what string, limit time.Duration, ask func() error) time.Duration {
	i.t.Helper()
	started := time.Now()
	for {
		err := ask()
		if err == nil {
			return time.Since(started)
		}
		if time.Since(started) > limit {
			i.t.Fatalf("%s: not after %s: %v", what, limit, err)
		}
		select {
		case <-i.t.Context().Done():
			i.t.Fatalf("%s: %v", what, i.t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ready waits until everything that was asked for is there.
func (i *installation) ready() time.Duration {
	i.t.Helper()
	return i.eventually("cluster is ready", func() error {
		status, err := i.status()
		if err != nil {
			return err
		}
		components := status.Components
		for _, cluster := range status.Clusters {
			components = append(components, cluster.Components...)
		}
		for _, c := range components {
			if c.State != runner.Ready {
				return fmt.Errorf("%s is %s: %s", c.Name, c.State, c.Message)
			}
		}
		if !status.Ready() {
			raw, _ := json.Marshal(status)
			return fmt.Errorf("not ready: %s", raw)
		}
		return nil
	})
}

// containers are the ids of all pods' first containers, a line each in the order of the pods' names. A container that
// does not run yet has an empty line.
func (i *installation) containers() string {
	i.t.Helper()
	return i.mustKubectl("get", "pods", "-A", "--field-selector=status.phase!=Failed", "-o",
		`jsonpath={range .items[*]}{.status.containerStatuses[0].containerID}{"\n"}{end}`)
}

// settled waits until no pod comes or goes any more, and returns the containers. A machine that had no memory left
// evicts pods, each time that its kubelet looks at it (every 10 s), and what made them makes others.
func (i *installation) settled() string {
	i.t.Helper()
	var last string
	var since time.Time
	i.eventually("pods stay as they are", func() error {
		if now := i.containers(); now != last {
			last, since = now, time.Now()
		}
		if strings.Contains("\n"+last, "\n\n") {
			return fmt.Errorf("a container does not run yet: %q", last)
		}
		if time.Since(since) < 15*time.Second {
			return fmt.Errorf("they changed %s ago", time.Since(since))
		}
		return nil
	})
	return last
}
