// SPDX-License-Identifier: Apache-2.0

package nodeconfig_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Documents drawn at random are merged as nodeadm merges them. The wanted results were computed by nodeadm's own rules
// (amazon-eks-ami at 81fec2e8, nodeadm/internal/api/merge.go) with the library that they are written for,
// dario.cat/mergo v1.0.2.
func TestMergeIsThatOfEKS(t *testing.T) {
	file, err := os.Open("testdata/nodeadm-merges.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		var want struct {
			Documents []map[string]any `json:"documents"`
			Merged    map[string]any   `json:"merged"`
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		var sources []nodeconfig.Source
		known(want.Merged)
		for i, spec := range want.Documents {
			known(spec)
			content, err := yaml.Marshal(map[string]any{"apiVersion": nodeconfig.APIVersionEKS, "kind": nodeconfig.Kind, "spec": spec})
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, nodeconfig.Source{Name: fmt.Sprint(i), Content: content})
		}
		merged, err := nodeconfig.Read(sources, false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(meaning(t, want.Merged), meaning(t, merged.Spec)); diff != "" {
			t.Errorf("case %d (-nodeadm +muster):\n%s", count+1, diff)
		}
	}
	if count < 40 {
		t.Errorf("%d cases only", count)
	}
}

// known moves what was drawn to where the kubelet and containerd know it: fields that are free below one that is there,
// and flags that are.
func known(spec map[string]any) {
	for _, at := range [][3]string{{"kubelet", "config", "systemReserved"}, {"containerd", "baseRuntimeSpec", "annotations"}} {
		section, _ := spec[at[0]].(map[string]any)
		if drawn, _ := section[at[1]].(map[string]any); len(drawn) > 0 {
			section[at[1]] = map[string]any{at[2]: drawn}
		}
	}
	kubelet, _ := spec["kubelet"].(map[string]any)
	flags, _ := kubelet["flags"].([]any)
	for i, flag := range flags {
		flags[i] = map[any]any{"--a=1": "--v=1", "--b=2": "--node-ip=2"}[flag]
	}
}

// meaning is a spec without what is empty on its first two levels, and with TOML as what it says.
func meaning(t *testing.T, spec any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	for section, value := range tree {
		object, _ := value.(map[string]any)
		if text, ok := object["config"].(string); ok {
			var config map[string]any
			if err := toml.Unmarshal([]byte(text), &config); err != nil {
				t.Fatal(err)
			}
			object["config"] = config
		}
		for name, value := range object {
			if inner, ok := value.(map[string]any); ok && len(inner) == 0 {
				delete(object, name)
			}
		}
		if len(object) == 0 {
			delete(tree, section)
		}
	}
	return tree
}

func TestMergeTOML(t *testing.T) {
	got, err := nodeconfig.MergeTOML("version = 3\n[a.\"b.c\"]\nd = 1\ne = [1, 2]\n", "[a.\"b.c\"]\ne = [3]\nf = true\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "version = 3\n\n[a]\n[a.\"b.c\"]\nd = 1\ne = [3]\nf = true\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for _, broken := range [][2]string{{"[", ""}, {"", "a ="}} {
		if _, err := nodeconfig.MergeTOML(broken[0], broken[1]); err == nil {
			t.Errorf("%q: no error", broken)
		}
	}
}

func TestReadIsBounded(t *testing.T) {
	const document = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
	for name, content := range map[string]string{
		"long":           document + "# " + strings.Repeat("x", nodeconfig.MaxDocument),
		"many documents": strings.Repeat("---\n"+document, nodeconfig.MaxDocuments+1),
		// Each name stands for ten of the one before; the YAML library refuses what grows so.
		"aliases": document + "spec:\n  kubelet:\n    config:\n      a: &a [x,x,x,x,x,x,x,x,x,x]\n" + aliases(),
	} {
		if _, err := nodeconfig.Read([]nodeconfig.Source{{Name: name, Content: []byte(content)}}, false); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func aliases() string {
	var text strings.Builder
	for c := 'b'; c < 'm'; c++ {
		fmt.Fprintf(&text, "      %c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	return text.String()
}

// A marshalled spec is read back as it was. A redacted spec has no secrets, and the original stays as it is.
func TestMarshalAndRedacted(t *testing.T) {
	spec := nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{Name: "one", APIServerEndpoint: "https://192.168.64.2:443", CertificateAuthority: authority(t), CIDR: "10.100.0.0/16"},
		Kubelet: nodeconfig.Kubelet{
			Config: map[string]any{"maxPods": int64(20), "failSwapOn": false, "evictionHard": map[string]any{"memory.available": "100Mi"}},
			Flags:  []string{"--node-labels=a=b", "--manifest-url=http://me:word@proxy:3128"},
		},
		Instance: nodeconfig.Instance{Environment: map[string]map[string]string{"default": {"HTTPS_PROXY": "http://me:word@proxy:3128", "AWS_SECRET_ACCESS_KEY": "s3cret"}}},
		Containerd: nodeconfig.Containerd{
			Config:          "[plugins.x.registry.configs.\"a.example\".auth]\nusername = \"me\"\npassword = \"s3cret\"\n",
			BaseRuntimeSpec: map[string]any{"process": map[string]any{"env": []any{"PATH=/bin", "DB_PASSWORD=s3cret"}}},
		},
		Join: nodeconfig.Join{Token: "abcdef.0123456789abcdef"},
	}
	read := func(spec nodeconfig.Spec) nodeconfig.Spec {
		raw, err := nodeconfig.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := nodeconfig.Read([]nodeconfig.Source{{Name: "marshalled", Content: raw}}, false)
		if err != nil {
			t.Fatal(err)
		}
		return merged.Spec
	}
	if diff := cmp.Diff(spec, read(spec)); diff != "" {
		t.Errorf("(-marshalled +read):\n%s", diff)
	}
	redacted, err := spec.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := nodeconfig.Marshal(redacted)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"0123456789abcdef", ":word", "s3cret"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s is shown:\n%s", secret, raw)
		}
	}
	if spec.Join.Token != "abcdef.0123456789abcdef" || !strings.Contains(spec.Kubelet.Flags[1], "word") || !strings.Contains(spec.Instance.Environment["default"]["HTTPS_PROXY"], "word") {
		t.Error("redacting changed the original")
	}
}

// An accepted spec can be written and is read back as the same; no error repeats a token; nothing panics.
func FuzzRead(f *testing.F) {
	for dir := range folders(f, "testdata/read") {
		raw, err := os.ReadFile(dir + "/user-data")
		if err == nil {
			f.Add(raw, true)
		}
	}
	f.Add([]byte("apiVersion: node.muster.dev/v1alpha1\nkind: NodeConfig\nspec: {join: {token: [abcdef.0123456789abcdef]}}\n"), false)
	f.Fuzz(func(t *testing.T, content []byte, lenient bool) {
		source := nodeconfig.Source{Name: "fuzzed", Content: content}
		once, err := nodeconfig.Read([]nodeconfig.Source{source}, lenient)
		if err != nil {
			if strings.Contains(err.Error(), "abcdef.0123456789abcdef") {
				t.Errorf("the token is shown: %v", err)
			}
			return
		}
		_ = once.Spec.Validate()
		raw, err := nodeconfig.Marshal(once.Spec)
		if err != nil {
			t.Fatal(err)
		}
		again, err := nodeconfig.Read([]nodeconfig.Source{{Name: "marshalled", Content: raw}}, false)
		if err != nil {
			t.Fatalf("what was marshalled cannot be read: %v\n%s", err, raw)
		}
		if diff := cmp.Diff(once.Spec, again.Spec); diff != "" {
			t.Errorf("(-read +marshalled and read):\n%s", diff)
		}
		values, err := again.Values()
		if err != nil {
			t.Fatal(err)
		}
		if len(values) != len(again.Origins) {
			t.Errorf("%d values, %d origins", len(values), len(again.Origins))
		}
		for _, value := range values {
			if value.From == "" {
				t.Errorf("%s comes from nowhere", value.Path)
			}
		}
	})
}

func TestWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"token: abcdef.0123456789abcdef":                 "token: (not shown)",
		"http://me:word@proxy:3128 and https://a/b@c":    "http://(not shown)@proxy:3128 and https://a/b@c",
		"AWS_SECRET_ACCESS_KEY=\"s3cret word\"\nA=\"b\"": "AWS_SECRET_ACCESS_KEY=(not shown)\nA=\"b\"",
		"password = 's3cret'\nauth = {a = 1}":            "password = (not shown)\nauth = {a = 1}",
		"--db-password=s3cret --v=4":                     "--db-password=(not shown) --v=4",
		"KUBELET_ARGS=\"--x-token=s3cret --v=4\"":        "KUBELET_ARGS=\"--x-token=(not shown) --v=4\"",
		"--authentication-token-webhook=true":            "--authentication-token-webhook=true",
		"tokenFile = \"/run/token\"":                     "tokenFile = \"/run/token\"",
	} {
		if got := nodeconfig.WithoutSecrets(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
