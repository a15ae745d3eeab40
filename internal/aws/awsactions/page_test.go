// SPDX-License-Identifier: Apache-2.0

package awsactions

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const pagePath = "../../../docs/aws-actions.md"

var (
	nameForm   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	callerForm = regexp.MustCompile(`^([a-z][a-z0-9_<-]*|CreateCluster)$`)
	keyForm    = regexp.MustCompile(`^[a-z0-9-]+:[A-Za-z]+(/[A-Z]+)?$`)
)

// readPage reads the tables of the page. Each problem is an error of its own.
func readPage(page string) (services []Service, callers map[string][]string, problems []error) {
	callers = map[string][]string{}
	resources := map[string][]Resource{}
	seen := map[string]bool{}
	section := ""
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = heading
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(cells[0], "---") {
			continue
		}
		switch {
		case section == "Resource types" && len(cells) == 4 && cells[0] != "service":
			resources[cells[0]] = append(resources[cells[0]], Resource{Type: cells[1], ARN: strings.Trim(cells[2], "`"), Keys: listed(cells[3], "none")})
		case len(cells) == 5 && cells[0] == "action":
			services = append(services, Service{Name: section})
		case len(cells) == 5 && len(services) > 0 && services[len(services)-1].Name == section:
			action, err := readRow(cells)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %q: %w", section, cells[0], err))
			}
			if id := section + ":" + action.Name; seen[id] {
				problems = append(problems, fmt.Errorf("%s is there twice", id))
			} else {
				seen[id] = true
			}
			for caller := range strings.SplitSeq(cells[2], ", ") {
				callers[caller] = append(callers[caller], section+":"+action.Name)
			}
			services[len(services)-1].Actions = append(services[len(services)-1].Actions, action)
		case len(cells) > 4:
			problems = append(problems, fmt.Errorf("%s: row %.40q is in no table of actions", section, line))
		}
	}
	for i := range services {
		services[i].Resources = resources[services[i].Name]
	}
	return services, callers, problems
}

func readRow(cells []string) (Action, error) {
	a := Action{Name: cells[0]}
	if !nameForm.MatchString(a.Name) {
		return a, fmt.Errorf("not a name of an action")
	}
	marks := map[string]Mark{"real": Real, "record": Record, "refused": Refused}
	a.Mark = marks[cells[1]]
	if a.Mark == 0 {
		return a, fmt.Errorf("the mark is %q: it must be real, record or refused", cells[1])
	}
	for caller := range strings.SplitSeq(cells[2], ", ") {
		if !callerForm.MatchString(caller) {
			return a, fmt.Errorf("the caller %q is not a word", caller)
		}
	}
	if cells[3] == "" {
		return a, fmt.Errorf("nothing says what is read back, or why it is refused")
	}
	if a.Mark == Refused {
		a.Reason = cells[3]
		if cells[4] != "none" {
			return a, fmt.Errorf("a refused action has no resources: write none")
		}
		return a, nil
	}
	types, keys, _ := strings.Cut(cells[4], " · ")
	a.Resources, a.Keys = listed(types, "any"), listed(keys, "")
	for _, key := range a.Keys {
		if !keyForm.MatchString(key) {
			return a, fmt.Errorf("%q is not a condition key", key)
		}
	}
	return a, nil
}

func listed(cell, none string) []string {
	if cell == none {
		return nil
	}
	return strings.Split(cell, ", ")
}

func TestThePageIsTheList(t *testing.T) {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	services, callers, problems := readPage(string(page))
	for _, problem := range problems {
		t.Error(problem)
	}
	if diff := cmp.Diff(services, Services(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("docs/aws-actions.md (-) and the code (+) differ:\n%s", diff)
	}
	// A caller that the page has one action of is often a misspelled one; each must be a Terraform resource or in the
	// legend.
	for caller, actions := range callers {
		if strings.HasPrefix(caller, "aws_") {
			continue
		}
		if !strings.Contains(string(page), "| "+caller+" ") && !strings.Contains(string(page), ", "+caller+" |") && len(actions) < 2 && !slices.Contains(programs(), caller) {
			t.Errorf("caller %q of %v is not explained", caller, actions)
		}
		if !strings.Contains(legend(string(page)), caller) && !slices.Contains(programs(), caller) {
			t.Errorf("caller %q of %v is not in the legend", caller, actions)
		}
	}
}

// programs are callers that need no explanation.
func programs() []string {
	return []string{"eksctl", "karpenter", "cluster-autoscaler", "ebs-csi", "efs-csi", "cloud-controller-manager", "node-termination-handler", "pod-identity-agent"}
}

// legend is the table of callers.
func legend(page string) string {
	_, after, _ := strings.Cut(page, "| name | who |")
	before, _, _ := strings.Cut(after, "\n\n")
	return before
}

func TestProblemsOfThePage(t *testing.T) {
	const head = "## ec2\n\n| action | mark | called by | read back | resources |\n|---|---|---|---|---|\n"
	for name, c := range map[string]struct{ rows, want string }{
		"fine":                   {"| CreateVpc | real | cli | VpcId | vpc · aws:TagKeys |\n", ""},
		"twice":                  {"| CreateVpc | real | cli | VpcId | vpc |\n| CreateVpc | record | cli | VpcId | vpc |\n", "twice"},
		"no mark":                {"| CreateVpc | maybe | cli | VpcId | vpc |\n", "mark"},
		"no caller":              {"| CreateVpc | real | | VpcId | vpc |\n", "caller"},
		"nothing read":           {"| CreateVpc | real | cli | | vpc |\n", "read back"},
		"not a key":              {"| CreateVpc | real | cli | VpcId | vpc · tags |\n", "condition key"},
		"not a name":             {"| create-vpc | real | cli | VpcId | vpc |\n", "not a name"},
		"refused with resources": {"| CreateVpc | refused | cli | no | vpc |\n", "write none"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, problems := readPage(head + c.rows)
			if text := fmt.Sprint(problems); (len(problems) > 0) != (c.want != "") || !strings.Contains(text, c.want) {
				t.Errorf("problems: %v, want %q", problems, c.want)
			}
		})
	}
}
