// SPDX-License-Identifier: Apache-2.0

package awsactions

import "slices"

// Mark says what the account makes of an action.
type Mark uint8

// The marks.
const (
	// Real is an action whose effect is there.
	Real Mark = iota + 1
	// Record is an action whose request is checked, kept and read back, without an effect; or that lists what never
	// exists.
	Record
	// Refused is an action that is answered with an error and the reason.
	Refused
)

// String is the mark as the page has it.
func (m Mark) String() string {
	switch m {
	case Real:
		return "real"
	case Record:
		return "record"
	case Refused:
		return "refused"
	}
	return "unknown"
}

// Action is one action of a service.
type Action struct {
	Name string
	Mark Mark
	// Resources are the types of resources that IAM decides about. Without any, "*" in a policy fits always.
	Resources []string
	// Keys are the condition keys that a request sets beside the global ones and those of its resources. KEY, NAME and
	// TYPE stand for what a request names, as in aws:RequestTag/KEY.
	Keys []string
	// Reason says why the action is refused.
	Reason string
}

// Decided reports whether IAM's decision depends on what a request is about: a resource, or a key that it sets.
func (a Action) Decided() bool { return len(a.Resources) > 0 || len(a.Keys) > 0 }

// Resource is a type of resources.
type Resource struct {
	Type string
	// ARN has variables in AWS's spelling: ${Partition}, ${Region}, ${Account} and names.
	ARN string
	// Keys are the condition keys of the resource itself, beside its tags.
	Keys []string
}

// Service is a service with its actions. Name is that of its table, which says if requests are signed for another name,
// or policies name its actions by another prefix.
type Service struct {
	Name      string
	Actions   []Action
	Resources []Resource
}

// Services are all services, in the order of the page.
func Services() []Service {
	return []Service{
		{Name: "eks", Actions: eksActions(), Resources: eksResources()},
		{Name: "eks-auth", Actions: eksauthActions(), Resources: eksauthResources()},
		{Name: "arc-zonal-shift", Actions: zonalShiftActions(), Resources: zonalShiftResources()},
		{Name: "ec2", Actions: slices.Concat(ec2Actions(), ec2ImageActions(), ec2SpotActions()), Resources: ec2Resources()},
		{Name: "autoscaling", Actions: autoscalingActions(), Resources: autoscalingResources()},
		{Name: "cloudformation", Actions: cloudformationActions(), Resources: cloudformationResources()},
		{Name: "ssm", Actions: ssmActions(), Resources: ssmResources()},
		{Name: "kms", Actions: kmsActions(), Resources: kmsResources()},
		{Name: "ecr", Actions: ecrActions(), Resources: ecrResources()},
		{Name: "elasticfilesystem", Actions: efsActions(), Resources: efsResources()},
		{Name: "logs", Actions: logsActions(), Resources: logsResources()},
		{Name: "sqs", Actions: sqsActions(), Resources: sqsResources()},
		{Name: "events", Actions: eventsActions(), Resources: eventsResources()},
		{Name: "pricing", Actions: pricingActions()},
		{Name: "fis", Actions: fisActions(), Resources: fisResources()},
		{Name: "tagging", Actions: taggingActions()},
		{Name: "elasticloadbalancing", Actions: classicBalancerActions()},
		{Name: "elasticloadbalancingv2", Actions: balancerActions()},
		{Name: "sts", Actions: stsActions(), Resources: stsResources()},
		{Name: "iam", Actions: iamActions(), Resources: iamResources()},
	}
}

// tagged are the keys of a request that sets tags.
func tagged() []string { return []string{"aws:RequestTag/KEY", "aws:TagKeys"} }

// List finds actions by service and name.
type List struct {
	services map[string]bool
	actions  map[[2]string]Action
	waiting  map[[2]string]bool
}

// NewList makes the list of all actions.
func NewList() *List {
	l := &List{services: map[string]bool{}, actions: map[[2]string]Action{}, waiting: map[[2]string]bool{}}
	for service, names := range notYet() {
		for _, name := range names {
			l.waiting[[2]string{service, name}] = true
		}
	}
	for _, s := range Services() {
		l.services[s.Name] = true
		for _, a := range s.Actions {
			l.actions[[2]string{s.Name, a.Name}] = a
		}
	}
	return l
}

// HasService reports whether a service is on the list.
func (l *List) HasService(service string) bool { return l.services[service] }

// Find finds an action.
func (l *List) Find(service, action string) (Action, bool) {
	a, ok := l.actions[[2]string{service, action}]
	return a, ok
}

// NotYet reports whether an action is on the list as real or a record, and nobody has written it.
func (l *List) NotYet(service, action string) bool { return l.waiting[[2]string{service, action}] }

// Problems says how what a service answers differs from the list. answered reports whether it answers an action.
func Problems(answered func(service, action string) bool) []string {
	return problemsOf(answered, notYet())
}

// problemsOf is Problems, with the actions that nobody has written, by their service.
func problemsOf(answered func(service, action string) bool, waiting map[string][]string) []string {
	var problems []string
	for _, s := range Services() {
		for _, a := range s.Actions {
			here, later := answered(s.Name, a.Name), slices.Contains(waiting[s.Name], a.Name)
			switch {
			case a.Mark == Refused && here:
				problems = append(problems, s.Name+":"+a.Name+" is answered, and the list refuses it: change its mark")
			case a.Mark == Refused && later:
				problems = append(problems, s.Name+":"+a.Name+" is refused: take it out of notyet.go")
			case a.Mark != Refused && here && later:
				problems = append(problems, s.Name+":"+a.Name+" is answered: take it out of notyet.go")
			case a.Mark != Refused && !here && !later:
				problems = append(problems, s.Name+":"+a.Name+" is "+a.Mark.String()+" and nothing answers it: register it, or name it in notyet.go")
			}
			waiting[s.Name] = slices.DeleteFunc(waiting[s.Name], func(name string) bool { return name == a.Name })
		}
		for _, name := range waiting[s.Name] {
			problems = append(problems, s.Name+":"+name+" is in notyet.go and not on the list")
		}
		delete(waiting, s.Name)
	}
	for service := range waiting {
		problems = append(problems, service+" is in notyet.go, and there is no such service on the list")
	}
	slices.Sort(problems)
	return problems
}
