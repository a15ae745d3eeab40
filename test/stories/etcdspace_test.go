// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/etcdspace"
)

// smallQuota is that of an etcd that is full after a few writes, in bytes.
const smallQuota = 16 << 20

// TestEtcdSpace fills an etcd to a small quota: it says so, takes no write, and takes them again once space was freed. An
// etcd whose objects were deleted is defragmented where that is worth it, and left alone where it is not.
//
//story:about plane/etcdspace
func TestEtcdSpace(t *testing.T) {
	t.Parallel()
	e := newEtcd(t, smallQuota)
	plenty := func() (int64, error) { return 1 << 40, nil }
	before := e.space()
	if before.Quota != smallQuota || before.NoSpace || before.Size == 0 {
		t.Fatalf("a new one: %+v", before)
	}
	if f, err := e.upkeep.Free(t.Context(), plenty); err != nil || f.Defragmented || !strings.HasPrefix(f.String(), "nothing was done") {
		t.Errorf("a new one: %s, %v", f, err)
	}

	// One object that is written again and again: what fills the file is history.
	var full error
	for n := 0; full == nil && n < 100; n++ {
		full = e.put("object", 1<<20)
	}
	if full == nil || !strings.Contains(full.Error(), "space exceeded") {
		t.Fatalf("it is full: %v", full)
	}
	filled := e.space()
	if !filled.NoSpace || filled.Size < smallQuota*9/10 {
		t.Errorf("it is full: %+v", filled)
	}
	if condition, known := filled.Condition(); !known || condition.Reason != "NoSpace" {
		t.Errorf("%+v", condition)
	}
	f, err := e.upkeep.Free(t.Context(), plenty)
	if err != nil || !f.Defragmented || !f.Before.NoSpace || f.After.NoSpace || f.After.Size > smallQuota/4 {
		t.Fatalf("%+v, %v", f, err)
	}
	t.Logf("%s; told before: %s", f, f.Before.Pause())
	if f.Pause > f.Before.Pause() {
		t.Errorf("the pause was %s, and told was %s", f.Pause, f.Before.Pause())
	}
	if now := e.space(); now.NoSpace {
		t.Errorf("%+v", now)
	}
	if err := e.put("object", 1<<10); err != nil {
		t.Errorf("it takes writes again: %v", err)
	}

	// Objects that are all there: nothing can be freed, and the alarm stays.
	for n, full := 0, error(nil); full == nil && n < 100; n++ {
		full = e.put(fmt.Sprintf("object-%d", n), 1<<20)
	}
	f, err = e.upkeep.Free(t.Context(), plenty)
	if now := e.space(); err == nil && now.NoSpace || err != nil && !now.NoSpace {
		t.Errorf("full of objects: %s, %v, and then %+v", f, err, now)
	}
	t.Logf("full of objects: %s, %v", f, err)
}

// etcdAlone is an etcd of no cluster.
type etcdAlone struct {
	t      *testing.T
	upkeep etcdspace.Upkeep
}

// newEtcd starts an etcd with a quota in bytes, at a port of its own.
func newEtcd(t *testing.T, quota int64) etcdAlone {
	t.Helper()
	var urls [2]string
	for i := range urls {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		urls[i] = "http://" + listener.Addr().String()
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs(t), "etcd"), "--data-dir", filepath.Join(t.TempDir(), "data"), "--quota-backend-bytes", fmt.Sprint(quota),
		"--listen-client-urls", urls[0], "--advertise-client-urls", urls[0], "--listen-peer-urls", urls[1])
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	e := etcdAlone{t, etcdspace.Upkeep{URL: urls[0], Client: http.DefaultClient}}
	for end := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		_, err := e.upkeep.Space(t.Context())
		if err == nil {
			return e
		}
		if time.Now().After(end) {
			t.Fatalf("etcd does not answer: %v\n%s", err, said.String())
		}
	}
}

func (e etcdAlone) space() etcdspace.Space {
	e.t.Helper()
	s, err := e.upkeep.Space(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

// put writes a value of a size in bytes.
func (e etcdAlone) put(key string, size int) error {
	encode := base64.StdEncoding.EncodeToString
	body, err := json.Marshal(map[string]string{"key": encode([]byte(key)), "value": encode(bytes.Repeat([]byte("x"), size))})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(e.t.Context(), http.MethodPost, e.upkeep.URL+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := e.upkeep.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(string(raw))
	}
	return err
}
