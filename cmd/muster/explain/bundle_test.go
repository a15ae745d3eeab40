// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
)

// unpacked is the content of an archive, as one text.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(compressed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBundle(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: clitest.MadeBefore("database", 0), Data: map[string][]byte{"a": []byte("only-in-a-secret")}}
	secret.Namespace = "default"
	b := world(t, newRefused(), secret)
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	if got := run(t, b, "--bundle", path); got != 0 || b.Out.Len() > 0 || !strings.Contains(b.Err.String(), path+" is written") {
		t.Fatalf("exit code %d, %q, %q", got, b.Out.String(), b.Err.String())
	}
	text := unpacked(t, path)
	for _, want := range []string{"M-IAM-01", "default/database", clitest.FirstNode, "contents.json", "[left out: value with the name of a secret]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the archive does not have %q", want)
		}
	}
	if strings.Contains(text, "only-in-") {
		t.Errorf("the archive has a secret:\n%s", text)
	}
	reads, err := os.ReadFile(filepath.Join(b.O.StateDir, "logs", "reads.log"))
	if err != nil || !strings.Contains(string(reads), path) || !strings.Contains(string(reads), `"command":"explain"`) {
		t.Errorf("%v: %s", err, reads)
	}
	if got := run(t, b, "--bundle", path, "machine", refusedMachine); got != 2 || !strings.Contains(b.Err.String(), "not overwritten") {
		t.Errorf("once more: exit code %d, %q", got, b.Err.String())
	}
	for args, want := range map[string]string{"--bundle=": "--bundle is empty", "--bundle=" + path + "2 machine i-1": "not found"} {
		if got := run(t, b, strings.Fields(args)...); got != 2 || !strings.Contains(b.Err.String(), want) {
			t.Errorf("%s: exit code %d, %q", args, got, b.Err.String())
		}
	}
	b.Planes.Management = func(*terminal.Options) (*kinds.Client, error) { return nil, errors.New("it is down") }
	if got := run(t, b, "--bundle", path+"3", "machine", refusedMachine); got != 0 || !strings.Contains(unpacked(t, path+"3"), "it is down") {
		t.Errorf("without the management plane: exit code %d, %q", got, b.Err.String())
	}
}
