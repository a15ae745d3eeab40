// SPDX-License-Identifier: Apache-2.0

package userdata_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/node/userdata"
)

// The formats are pinned by the cases of internal/node/nodeconfig, which have the same user data. Here is what they
// leave open.

func multipart(parts ...string) string {
	return "Content-Type: multipart/mixed; boundary=B\n\n--B\n" + strings.Join(parts, "\n--B\n") + "\n--B--\n"
}

func compressed(t testing.TB, content []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestReadTells(t *testing.T) {
	script := "#!/bin/sh\necho\n"
	for name, c := range map[string]struct {
		raw  string
		want []userdata.Part
	}{
		"nothing":               {"", nil},
		"blanks":                {" \n", nil},
		"a script":              {script, []userdata.Part{{MediaType: "text/x-shellscript", Name: "user data", Content: []byte(script)}}},
		"a script in base64":    {base64.StdEncoding.EncodeToString([]byte(script)), []userdata.Part{{MediaType: "text/x-shellscript", Name: "user data", Content: []byte(script)}}},
		"cloud-config":          {"#cloud-config\n", []userdata.Part{{MediaType: "text/cloud-config", Name: "user data", Content: []byte("#cloud-config\n")}}},
		"a script with header":  {"Content-Type: text/x-shellscript\n\n" + script, []userdata.Part{{MediaType: "text/x-shellscript", Name: "user data", Content: []byte(script)}}},
		"anything else":         {"kind: x\n", []userdata.Part{{MediaType: "application/node.eks.aws", Name: "user data", Content: []byte("kind: x\n")}}},
		"a letter":              {"From: me\nX-Long: a\n b\nContent-Type: text/x-shellscript\n\n" + script, []userdata.Part{{MediaType: "text/x-shellscript", Name: "user data", Content: []byte(script)}}},
		"a script that sends":   {script + "cat <<E\nContent-Type: a/b\n\nE\n", []userdata.Part{{MediaType: "text/x-shellscript", Name: "user data", Content: []byte(script + "cat <<E\nContent-Type: a/b\n\nE\n")}}},
		"a type further down":   {"kind: x\n\nContent-Type: a/b\n", []userdata.Part{{MediaType: "application/node.eks.aws", Name: "user data", Content: []byte("kind: x\n\nContent-Type: a/b\n")}}},
		"a byte order mark":     {"\ufeffkind: x\n", []userdata.Part{{MediaType: "application/node.eks.aws", Name: "user data", Content: []byte("kind: x\n")}}},
		"a part of its own":     {multipart("Content-Type: text/jinja2; charset=utf-8\n\nhello"), []userdata.Part{{MediaType: "text/jinja2", Name: "user data, part 1", Content: []byte("hello")}}},
		"parts without a type":  {multipart("\n#!/bin/sh", "\n#cloud-config", "\nhello"), []userdata.Part{{MediaType: "text/x-shellscript", Name: "user data, part 1", Content: []byte("#!/bin/sh")}, {MediaType: "text/cloud-config", Name: "user data, part 2", Content: []byte("#cloud-config")}, {MediaType: "text/plain", Name: "user data, part 3", Content: []byte("hello")}}},
		"a type that is no lie": {multipart("Content-Type: application/node.eks.aws\n\n#!/bin/sh"), []userdata.Part{{MediaType: "application/node.eks.aws", Name: "user data, part 1", Content: []byte("#!/bin/sh")}}},
	} {
		got, err := userdata.Read([]byte(c.raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// User data of Amazon Linux 2, as EKS made it for managed node groups: nothing stands between the header of its part
// and the script. cloud-init ran it, and so must muster, to the letter.
func TestReadAmazonLinux2(t *testing.T) {
	raw, err := os.ReadFile("testdata/amazon-linux-2")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(raw), "charset=\"us-ascii\"\n")
	script, _, _ = strings.Cut(script, "\n--//--\n")
	want := []userdata.Part{{MediaType: "text/x-shellscript", Name: "user data, part 1", Content: []byte(script)}}
	if !strings.HasPrefix(script, "#!/bin/bash\nset -ex\n") {
		t.Fatalf("that is another text: %.40q", script)
	}
	crlf := []userdata.Part{{MediaType: "text/x-shellscript", Name: "user data, part 1", Content: []byte(strings.ReplaceAll(script, "\n", "\r\n"))}}
	for name, c := range map[string]struct {
		raw  string
		want []userdata.Part
	}{
		"as it is":                {string(raw), want},
		"with an empty line":      {strings.Replace(string(raw), "\n#!", "\n\n#!", 1), want},
		"with a line of blanks":   {strings.Replace(string(raw), "\n#!", "\n \t\n#!", 1), want},
		"in CRLF":                 {strings.ReplaceAll(string(raw), "\n", "\r\n"), crlf},
		"with none at the top":    {strings.Replace(string(raw), "\n\n--//", "\n--//", 1), want},
		"with a field in between": {strings.Replace(string(raw), "\n#!", "\nX-Made-By: me:\n  and you\n#!", 1), want},
	} {
		got, err := userdata.Read([]byte(c.raw))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"a colon forgotten":      {"Content-Type: text", "Content-Type text", "user data, part 1: its header cannot be read: malformed header line: Content-Type text/x-shellscript; charset=\"us-ascii\""},
		"a blank in a name":      {"Content-Type: text", "Content-Type : text", "user data, part 1: its header cannot be read"},
		"a field that goes on":   {"#!/bin/bash", " #!/bin/bash", "user data, part 1: Content-Type"},
		"a part without content": {"Content-Type: text/x-shellscript; charset=\"us-ascii\"\n#!", " x: y\n#!", "user data, part 1: its header cannot be read"},
	} {
		if parts, err := userdata.Read([]byte(strings.Replace(string(raw), c.from, c.to, 1))); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %s", name, parts, err, c.want)
		}
	}
}

// Lines that only look like delimiters are content, and what follows the last delimiter is nobody's.
func TestReadDelimiters(t *testing.T) {
	raw := "Content-Type: multipart/mixed; boundary=B\n\npreamble\n--Bx\n--B \t\nContent-Type: a/b\n\n --B\n--Bar\n--B-\n\n--B\n--B--\nepilogue\n--B\nContent-Type: a/b\n\nx\n"
	want := []userdata.Part{
		{MediaType: "a/b", Name: "user data, part 1", Content: []byte(" --B\n--Bar\n--B-\n")},
		{MediaType: "text/plain", Name: "user data, part 2", Content: nil},
	}
	got, err := userdata.Read([]byte(raw))
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadIsBounded(t *testing.T) {
	half := compressed(t, make([]byte, userdata.MaxUnpacked/2+1))
	bombs := multipart("Content-Type: a/b\nContent-Transfer-Encoding: binary\n\n"+string(half), "Content-Type: a/b\nContent-Transfer-Encoding: binary\n\n"+string(half))
	many := make([]string, userdata.MaxParts+1)
	for i := range many {
		many[i] = "\nx"
	}
	for name, c := range map[string]struct{ raw, want string }{
		"long":        {strings.Repeat("x", userdata.MaxRaw+1), "user data has 16385 bytes; at most 16384 are read"},
		"a bomb":      {string(compressed(t, make([]byte, userdata.MaxUnpacked+1))), "user data: gzip holds more than the 1048576 bytes that are unpacked at most"},
		"two bombs":   {bombs, "user data, part 2: gzip holds more than the 1048576 bytes that are unpacked at most"},
		"many parts":  {multipart(many...), "user data, part 65: there are more than 64 parts"},
		"many levels": {nested(4), "user data, part 1.1.1: multipart lies in multipart more than 3 deep"},
	} {
		_, err := userdata.Read([]byte(c.raw))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
	if _, err := userdata.Read(compressed(t, bytes.Repeat([]byte("# x\n"), userdata.MaxUnpacked/4))); err != nil {
		t.Errorf("as much as is allowed: %v", err)
	}
	if _, err := userdata.ReadFile("f", bytes.Repeat([]byte("# x\n"), userdata.MaxRaw)); err != nil {
		t.Errorf("a file longer than user data may be: %v", err)
	}
	if parts, err := userdata.Read([]byte(nested(3))); err != nil || len(parts) != 1 || parts[0].Name != "user data, part 1.1.1" {
		t.Errorf("three levels: %v, %v", parts, err)
	}
}

func nested(levels int) string {
	text := "Content-Type: a/b\n\nx"
	for level := levels; level > 0; level-- {
		text = fmt.Sprintf("Content-Type: multipart/mixed; boundary=B%d\n\n--B%d\n%s\n--B%d--\n", level, level, text, level)
	}
	return text
}

// A cloud-config that says nothing asks for nothing; whatever else it says would not be done.
func TestIgnoredCloudConfigs(t *testing.T) {
	for content, want := range map[string]bool{
		"": false, "#cloud-config": false, "#cloud-config\n\n  # nothing\r\n": false,
		"#cloud-config\nusers: []": true, "#cloud-config\n---\n": true, "packages: [jq] # jq": true,
	} {
		part := userdata.Part{Name: "it", MediaType: userdata.TypeCloudConfig, Content: []byte(content)}
		if got := len(userdata.Ignored([]userdata.Part{part})) > 0; got != want {
			t.Errorf("%q: ignored is %t", content, got)
		}
	}
	boothook := userdata.Part{Name: "it", MediaType: "text/cloud-boothook", Content: []byte("# nothing")}
	if len(userdata.Ignored([]userdata.Part{boothook})) == 0 {
		t.Error("a boothook is carried out")
	}
}

func TestNodeConfigs(t *testing.T) {
	parts := []userdata.Part{
		{MediaType: "application/node.eks.aws", Name: "a", Content: []byte("x")},
		{MediaType: "text/x-shellscript", Name: "b", Content: []byte("#!/bin/sh\n# node.eks.aws/v1alpha1")},
		{MediaType: "text/plain", Name: "c", Content: []byte("apiVersion: node.muster.dev/v1alpha1")},
		{MediaType: "text/plain", Name: "d", Content: []byte("hello")},
	}
	sources, doubts := userdata.NodeConfigs(parts)
	if len(sources) != 1 || sources[0].Name != "a" || string(sources[0].Content) != "x" {
		t.Errorf("sources: %v", sources)
	}
	want := []string{"c looks like a NodeConfig and is ignored: its Content-Type is text/plain, not application/node.eks.aws"}
	if diff := cmp.Diff(want, doubts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing panics, and nothing gets past the bounds.
func FuzzRead(f *testing.F) {
	cases, err := filepath.Glob("../nodeconfig/testdata/read/*/user-data")
	if err != nil || len(cases) < 40 {
		f.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, name := range cases {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(nested(3)))
	f.Add([]byte(multipart("Content-Type: text/x-shellscript\n#!/bin/bash")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		parts, err := userdata.Read(raw)
		if err != nil && !strings.HasPrefix(err.Error(), "user data") {
			t.Errorf("the error does not say of what: %v", err)
		}
		total := 0
		for _, part := range parts {
			if part.MediaType == "" || !strings.HasPrefix(part.Name, "user data") {
				t.Errorf("part %q has type %q", part.Name, part.MediaType)
			}
			total += len(part.Content)
		}
		if len(parts) > userdata.MaxParts || total > userdata.MaxUnpacked+userdata.MaxRaw {
			t.Errorf("%d parts with %d bytes", len(parts), total)
		}
		_, _ = userdata.NodeConfigs(parts)
	})
}
