// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/aws/cloudformation/resource"
	"muster.dev/muster/internal/aws/cloudformation/stack"
)

// mark is the tag of a creation, by which the resource that it made is found again.
const mark = "muster.dev/stack-resource"

// Do makes one request for whom the stack acts. The error is an *awsfault.Error.
type Do func(ctx context.Context, service, action string, input awsshape.Object) (awsshape.Object, error)

// Order is a call of a stack, and what makes its requests those of one operation.
type Order struct {
	stack.Call
	// StackID is the ARN of the stack.
	StackID string
	// Seed is what the token of the creation is made of. A secret, unless the resource is older than the seeds of stacks.
	Seed string
	// Operation is another one for each creation, update and deletion of the stack.
	Operation string
}

// job is an order that is carried out.
type job struct {
	Order
	of resource.Type
	do Do
	// is has the properties that the resource is to have, and was those that it had or may have.
	is, was map[string]any
}

// handler has what differs between types.
type handler struct {
	// create makes the resource, or finds what an earlier call made, and returns the attributes that its physical id is made of.
	create func(ctx context.Context, j *job) (map[string]any, error)
	// complete does what has to be done after the creation; nil if nothing is. It is called again until the resource is ready.
	complete func(ctx context.Context, j *job) error
	// read returns the attributes, and whether the resource is ready.
	read func(ctx context.Context, j *job) (attributes map[string]any, ready bool, err error)
	// update brings the resource from was to is, and reports whether that is done. Nil for a type that nothing updates.
	update func(ctx context.Context, j *job) (done bool, err error)
	// remove deletes the resource, and reports whether it is gone.
	remove func(ctx context.Context, j *job) (gone bool, err error)
	// moves reports that an update gives the resource another physical id.
	moves bool
}

// handlers are those of all types, by their names.
var handlers = func() map[string]handler {
	all := map[string]handler{}
	for _, group := range []map[string]handler{eksHandlers(), networkHandlers(), routeHandlers(), securityGroupHandlers(), templateHandlers(), iamHandlers(), managedPolicyHandlers(), messageHandlers(), scalingGroupHandlers()} {
		maps.Copy(all, group)
	}
	return all
}()

// Types are the names of the types that can be provisioned, sorted.
func Types() []string { return slices.Sorted(maps.Keys(handlers)) }

// Carry makes the requests of an order that are due, and returns what came of them. A pending outcome has a reason if a request
// was refused that may succeed later.
func Carry(ctx context.Context, do Do, o Order) stack.Outcome {
	out := stack.Outcome{Serial: o.Resource.Serial, Work: o.Work}
	of, err := resource.Find(o.Resource.Type)
	h, ok := handlers[o.Resource.Type]
	if err != nil || !ok {
		out.Result, out.Reason = stack.Failed, fmt.Sprintf("Muster has no resources of the type %q", o.Resource.Type)
		return out
	}
	j := &job{Order: o, of: of, do: do, is: o.Resource.Properties}
	switch o.Work {
	case stack.Creating:
		err = j.make(ctx, h, &out)
	case stack.Updating, stack.Restoring:
		j.was = former(o.Work, o.Resource)
		err = j.change(ctx, h, &out)
	case stack.Deleting:
		var gone bool
		if gone, err = h.remove(ctx, j); isGone(err) {
			gone, err = true, nil
		}
		if err == nil && gone {
			out.Result = stack.Succeeded
		}
	}
	if err != nil {
		out.Reason = reasonOf(err)
		if !passes(o.Work, err) {
			out.Result = stack.Failed
		}
	}
	return out
}

// former are the properties that an updated resource had, or may have.
func former(work stack.Work, r stack.Resource) map[string]any {
	d := r.Was
	if work == stack.Restoring {
		d = r.Tried
	}
	if d == nil {
		return map[string]any{}
	}
	return d.Properties
}

// make brings a creation forward. The creation itself ends a call, so that the physical id is written before anything else is done.
func (j *job) make(ctx context.Context, h handler, out *stack.Outcome) error {
	if j.Resource.PhysicalID == "" {
		attributes, err := h.create(ctx, j)
		if err != nil {
			return err
		}
		out.Attributes, out.PhysicalID = attributes, j.physicalID(attributes)
		return nil
	}
	out.PhysicalID = j.Resource.PhysicalID
	if h.complete != nil {
		if err := h.complete(ctx, j); err != nil {
			return err
		}
	}
	return j.finish(ctx, h, out)
}

// change brings an update forward.
func (j *job) change(ctx context.Context, h handler, out *stack.Outcome) error {
	if h.update != nil {
		if done, err := h.update(ctx, j); err != nil || !done {
			return err
		}
	}
	err := j.finish(ctx, h, out)
	if err == nil && h.moves {
		out.PhysicalID = j.physicalID(out.Attributes)
	}
	return err
}

// physicalID is the physical id that attributes and properties make.
func (j *job) physicalID(attributes map[string]any) string {
	return j.of.PhysicalID(func(name string) string {
		if value, ok := attributes[name]; ok {
			return textOf(value)
		}
		return textOf(j.is[name])
	})
}

// finish reads the resource, and ends the call once it is ready.
func (j *job) finish(ctx context.Context, h handler, out *stack.Outcome) error {
	attributes, ready, err := h.read(ctx, j)
	if err != nil {
		return err
	}
	out.Attributes = map[string]any{}
	maps.Copy(out.Attributes, j.Resource.Attributes)
	maps.Copy(out.Attributes, attributes)
	if ready {
		out.Result = stack.Succeeded
	}
	return nil
}

// ask makes a request of members in a template's form.
func (j *job) ask(ctx context.Context, service, action string, members map[string]any) (awsshape.Object, error) {
	input, err := resource.Request(resource.Action{Service: service, Name: action}, members)
	if err != nil {
		return nil, err
	}
	return j.do(ctx, service, action, input)
}

// first makes the request of the type's first action, with the client token and the tag of the creation.
func (j *job) first(ctx context.Context) (awsshape.Object, error) {
	var tags map[string]string
	if j.of.Once == resource.ByTag || j.of.Once == resource.ByName {
		tags = map[string]string{mark: j.token()}
	}
	input, err := j.of.Input(j.is, tags, j.token())
	if err != nil {
		return nil, err
	}
	return j.do(ctx, j.of.Create[0].Service, j.of.Create[0].Name, input)
}

// token is the client token of the creation.
func (j *job) token() string { return j.Resource.Token(j.Seed) }

// stepToken is the client token of one step of this operation.
func (j *job) stepToken(step string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", j.token(), j.Operation, j.Work, step))
	return hex.EncodeToString(sum[:16])
}

// attribute is an attribute as text; empty without one.
func (j *job) attribute(name string) string { return textOf(j.Resource.Attributes[name]) }

// property is a property as text; empty without one.
func (j *job) property(name string) string { return textOf(j.is[name]) }

// errGone reports a resource that is not there any more.
var errGone = errors.New("the resource does not exist")

// isGone reports whether an action was refused because what it is about does not exist.
func isGone(err error) bool {
	if errors.Is(err, errGone) {
		return true
	}
	fault, ok := errors.AsType[*awsfault.Error](err)
	return ok && (strings.HasSuffix(fault.Code, ".NotFound") || slices.Contains([]string{"NatGatewayNotFound", "NoSuchEntity", "ResourceNotFoundException", "Gateway.NotAttached"}, fault.Code))
}

// hasCode reports whether an action was refused with one of some codes.
func hasCode(err error, codes ...string) bool {
	fault, ok := errors.AsType[*awsfault.Error](err)
	return ok && slices.Contains(codes, fault.Code)
}

// away are the codes of requests that may succeed a little later, whatever they are about.
var away = []string{
	"Throttling", "ThrottlingException", "RequestLimitExceeded", "ServiceUnavailable", "ServiceUnavailableException", "Unavailable", "InternalError", "InternalFailure",
	"ServerException", "InternalServerException", "InternalServerError",
}

// busy are the codes of changes and deletions that wait for something else that is going on.
var busy = []string{"ResourceInUseException", "DependencyViolation", "DeleteConflict", "ResourceInUse", "ScalingActivityInProgress", "InvalidIPAddress.InUse"}

// passes reports whether the same request may succeed later.
func passes(work stack.Work, err error) bool {
	fault, ok := errors.AsType[*awsfault.Error](err)
	if !ok {
		return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	}
	return fault.Status >= 500 || slices.Contains(away, fault.Code) || work != stack.Creating && slices.Contains(busy, fault.Code)
}

// reasonOf is an error as the reason of a resource's status.
func reasonOf(err error) string {
	fault, ok := errors.AsType[*awsfault.Error](err)
	if !ok {
		return err.Error()
	}
	return fmt.Sprintf("%s (Error Code: %s)", fault.Message, fault.Code)
}

// textOf is a scalar as text, as GetAtt returns it; empty for nil.
func textOf(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// at is the value at a path of an output, such as Vpc.VpcId; nil without one.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := value.(awsshape.Object)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// text is the text at a path of an output; empty without one.
func text(value any, path string) string { return textOf(at(value, path)) }

// list is the list at a path of an output; nil without one.
func list(value any, path string) []any {
	items, _ := at(value, path).([]any)
	return items
}

// firstOf is the first item at a path of an output; nil without one.
func firstOf(value any, path string) any {
	items := list(value, path)
	if len(items) == 0 {
		return nil
	}
	return items[0]
}

// takes reports whether an action has a member.
func takes(service, action, member string) bool {
	input := awstable.Service(service).Operation(action).Input
	return input != nil && input.Member(member) != nil
}
