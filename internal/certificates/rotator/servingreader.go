// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/rotation"
)

// servingReader sees that the API server has read the authorities that it trusts to sign kubelets' serving
// certificates.
//
// It reads that file again when it sends a request to a kubelet and has not looked for five minutes (client-go
// transport/ca_rotation.go). Exec, attach and port-forward use what was read last and never look themselves
// (apimachinery pkg/util/proxy/dial.go unwraps the transport), so time alone does not prove it. The reader therefore
// makes the API server ask a kubelet, and waits until it has counted a look that came after the file was written.
type servingReader struct {
	http *http.Client
	base string
	api  client.Client

	// The rotation that is waited for since a moment, and how often the API server's process that started at start had
	// looked before.
	phase rotation.Rotation
	since time.Time
	start string
	looks float64
	read  bool
}

const (
	// settle is how long a look that was under way when the file was written may take until it is counted.
	settle = time.Second
	// lookInterval is upstream's, with a margin.
	lookInterval = 5*time.Minute + 30*time.Second
)

func newServingReader(connection *http.Client, base string, api client.Client) *servingReader {
	return &servingReader{http: connection, base: base, api: api}
}

func (v *servingReader) pending(ctx context.Context, r rotation.Rotation) string {
	trusts := r
	trusts.Clear, trusts.Distributed, trusts.Hold = time.Time{}, time.Time{}, ""
	if r.Phase != rotation.Withdraw { // the same two are trusted in both of the first phases
		trusts.Phase, trusts.Since = rotation.Trust, time.Time{}
	}
	if v.phase != trusts {
		v.phase, v.since, v.start, v.read = trusts, time.Now(), "", false
	}
	if v.read || time.Since(v.since) < settle {
		return v.say()
	}
	start, looks, err := v.metrics(ctx)
	if err != nil {
		return "cannot see what the API server has read: " + err.Error()
	}
	switch {
	case v.start == "":
		v.start, v.looks = start, looks
	case v.start != start || looks > v.looks: // it started, or looked, after the file was written
		v.read = true
		return ""
	}
	asked, err := v.ask(ctx)
	if err != nil {
		return "cannot list nodes: " + err.Error()
	}
	if !asked && time.Since(v.since) > lookInterval {
		return "" // there is no kubelet; the first one that comes is asked
	}
	return v.say()
}

func (v *servingReader) say() string {
	if v.read {
		return ""
	}
	return "the API server has not read yet whom to trust for kubelets' serving certificates; it looks every five minutes"
}

// metrics returns the time at which the API server started, and the number of times that it has looked at the file with
// success.
func (v *servingReader) metrics(ctx context.Context) (start string, looks float64, err error) {
	body, err := v.get(ctx, "/metrics")
	if err != nil {
		return "", 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		switch {
		case !ok:
		case name == "process_start_time_seconds":
			start = value
		case strings.HasPrefix(name, "rest_client_transport_ca_reload_total{") && strings.Contains(name, `result="success"`):
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return "", 0, fmt.Errorf("reading metrics: %w", err)
			}
			looks += n
		}
	}
	if err := lines.Err(); err != nil {
		return "", 0, fmt.Errorf("reading metrics: %w", err)
	}
	if start == "" {
		return "", 0, errors.New("its metrics do not say when it started")
	}
	return start, looks, nil
}

// ask makes the API server call a kubelet or two. Their answers, or none, do not matter.
func (v *servingReader) ask(ctx context.Context) (asked bool, err error) {
	var nodes corev1.NodeList
	if err := v.api.List(ctx, &nodes, client.Limit(20)); err != nil {
		return false, err
	}
	for n, i := range rand.Perm(len(nodes.Items)) { //nolint:gosec // G404: the choice of kubelet is not a secret
		if n == 2 {
			break
		}
		_, _ = v.get(ctx, "/api/v1/nodes/"+nodes.Items[i].Name+"/proxy/healthz")
	}
	return len(nodes.Items) > 0, nil
}

func (v *servingReader) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := v.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, 64<<20))
}
