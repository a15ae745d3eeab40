// SPDX-License-Identifier: Apache-2.0

package awsactions

import (
	"slices"
	"strings"
	"testing"
)

func TestTheList(t *testing.T) {
	counts := map[Mark]int{}
	for _, s := range Services() {
		types := map[string]bool{}
		used := map[string]bool{}
		for _, r := range s.Resources {
			if types[r.Type] {
				t.Errorf("%s: resource %s is there twice", s.Name, r.Type)
			}
			types[r.Type] = true
			if !strings.HasPrefix(r.ARN, "arn:${Partition}:") {
				t.Errorf("%s: the ARN of %s is %q", s.Name, r.Type, r.ARN)
			}
		}
		seen := map[string]bool{}
		for _, a := range s.Actions {
			if seen[a.Name] {
				t.Errorf("%s:%s is there twice", s.Name, a.Name)
			}
			seen[a.Name] = true
			counts[a.Mark]++
			if a.Mark.String() == "unknown" || (a.Mark == Refused) != (a.Reason != "") {
				t.Errorf("%s:%s has the mark %s and the reason %q", s.Name, a.Name, a.Mark, a.Reason)
			}
			for _, r := range a.Resources {
				used[r] = true
				if !types[r] {
					t.Errorf("%s:%s is about %s, which is not a resource of the service", s.Name, a.Name, r)
				}
			}
		}
		for r := range types {
			if !used[r] {
				t.Errorf("%s: no action is about %s", s.Name, r)
			}
		}
	}
	if counts[Real] < 100 || counts[Record] < 80 || counts[Refused] < 80 {
		t.Errorf("real, records, refused: %v", counts)
	}
}

// An operation of EKS counts when its effect is seen in a cluster, and at least 45 of its 70 do.
func TestMostOfEKSIsReal(t *testing.T) {
	count := 0
	actions := eksActions()
	for _, a := range actions {
		if a.Mark == Real {
			count++
		}
	}
	if len(actions) != 70 || count < 45 {
		t.Errorf("%d of %d operations of EKS are real", count, len(actions))
	}
}

func TestFind(t *testing.T) {
	l := NewList()
	if a, ok := l.Find("ec2", "RunInstances"); !ok || a.Mark != Real || !slices.Contains(a.Resources, "instance") {
		t.Errorf("RunInstances is %+v, %v", a, ok)
	}
	for _, c := range [][2]string{{"ec2", "runInstances"}, {"eks", "RunInstances"}, {"s3", "GetObject"}, {"", ""}} {
		if a, ok := l.Find(c[0], c[1]); ok {
			t.Errorf("%v is %+v", c, a)
		}
	}
	if !l.HasService("eks-auth") || l.HasService("s3") {
		t.Error("eks-auth is on the list, and s3 is not")
	}
}

func TestProblems(t *testing.T) {
	list := NewList()
	fine := func(service, action string) bool {
		a, _ := list.Find(service, action)
		return a.Mark != Refused && !list.NotYet(service, action)
	}
	if problems := Problems(fine); problems != nil {
		t.Errorf("problems of the list with itself: %v", problems)
	}
	for name, c := range map[string]struct {
		service, action, want string
		answered              bool
	}{
		"an unwritten action is answered": {"autoscaling", "SuspendProcesses", "take it out of notyet.go", true},
		"a refused action is answered":    {"ec2", "CreateFlowLogs", "change its mark", true},
		"a written action is gone":        {"iam", "CreateRole", "register it", false},
	} {
		t.Run(name, func(t *testing.T) {
			waiting := notYet()
			if name == "an unwritten action is answered" {
				waiting[c.service] = append(waiting[c.service], c.action)
			}
			problems := problemsOf(func(service, action string) bool {
				if service == c.service && action == c.action {
					return c.answered
				}
				return fine(service, action)
			}, waiting)
			if len(problems) != 1 || !strings.HasPrefix(problems[0], c.service+":"+c.action) || !strings.Contains(problems[0], c.want) {
				t.Errorf("problems: %q, want one of %s:%s with %q", problems, c.service, c.action, c.want)
			}
		})
	}
}
