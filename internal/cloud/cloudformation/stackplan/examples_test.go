// SPDX-License-Identifier: Apache-2.0

package stackplan_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
)

var update = flag.Bool("update", false, "write the golden file anew")

// example is a template that eksctl 0.231.0 makes of an example file of its own repository: by its packages, for zones and subnets that were
// told to it, with an image of nodes in the place of one that Systems Manager names.
type example struct {
	Example, Stack string
	Body           json.RawMessage
}

// Each template of eksctl's 49 example files is checked as CreateStack checks it, and what comes of that is in a golden file: how many
// resources it makes, or all that is refused.
func TestExamplesOfEksctl(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/eksctl-examples.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	files := map[string]bool{}
	for decoder := json.NewDecoder(plain); ; {
		var e example
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[e.Example] = true
		fmt.Fprintf(&text, "%s %s: %s\n", e.Example, e.Stack, e.outcome(t))
	}
	if len(files) != 49 {
		t.Errorf("templates of %d example files", len(files))
	}
	const golden = "testdata/eksctl-examples.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("rewrite it with -update if that is meant (-want +got):\n%s", diff)
	}
}

// outcome is what is made of the template, or what is refused of it.
func (e example) outcome(t *testing.T) string {
	t.Helper()
	at := place()
	at.StackName, at.StackID = e.Stack, "arn:aws:cloudformation:us-east-1:000000000000:stack/"+e.Stack+"/1"
	at.Imports = func(name string) (string, error) { return "value-of-" + name, nil }
	plan, err := stackplan.Read(stackplan.Asked{Template: string(e.Body)}, at)
	if err == nil {
		err = plan.Check(stack.State{})
	}
	if err != nil {
		problems, invalid := stackplan.Problems(err)
		if !invalid {
			t.Errorf("%s %s: %v", e.Example, e.Stack, err)
		}
		return problems
	}
	graph, err := plan.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d resources", len(graph))
}
