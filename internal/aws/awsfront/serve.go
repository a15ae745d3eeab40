// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsroute"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/throttle"
	"muster.dev/muster/internal/platform/readcache"
)

// unknownAction is the action in logs and metrics of a request that names none.
const unknownAction = "unknown"

// handler answers one service, or the endpoint of STS and IAM.
type handler struct {
	front *Front
	table *awsshape.Service
	codec awsshape.Codec
}

// request is one on its way. Its table and codec are the handler's until it has said which others it is for.
type request struct {
	handler
	id, action, resource string
	operation            *awsshape.Operation
}

// ServeHTTP answers a request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := h.front.config.Now()
	record := RecordOf(r.Context())
	record.Service = h.table.Name
	q := &request{handler: *h, id: uuid.Must(uuid.NewRandomFromReader(rand.Reader)).String(), action: unknownAction}
	response, err := q.answer(w, r)
	record.Service, record.RequestID, record.Action = q.table.Name, q.id, q.action
	if q.resource != "" {
		record.Resource = q.resource
	}
	if err != nil {
		problem := refusal(q.table, err)
		response = q.codec.EncodeError(q.table, q.id, problem)
		record.Code, record.Message = problem.Code, problem.Message
		if problem.Cause != nil {
			record.Cause = problem.Cause
		}
	}
	header := w.Header()
	for name, value := range response.Header {
		header.Set(name, value)
	}
	header.Set("Date", h.front.config.Now().UTC().Format(http.TimeFormat)) // SDKs set their clock by it
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(response.Status)
	_, _ = w.Write(response.Body)
	h.front.metrics.observe(cmp.Or(q.table.Name, unknownAction), q.action, record.Code, h.front.config.Now().Sub(began))
}

// answer takes the request through all steps.
func (q *request) answer(w http.ResponseWriter, r *http.Request) (response awsshape.Response, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
		}
	}()
	call, input, err := q.admit(w, r)
	if err != nil {
		return awsshape.Response{}, err
	}
	output, err := q.act(q.lasting(r.Context()), call, input)
	if err != nil {
		return awsshape.Response{}, err
	}
	return q.codec.Encode(q.operation, q.id, output)
}

// lasting is the context of an action. A client that goes away does not leave its change half done: what an action needs to
// be stopped by is its own deadline. An action of STS or IAM is one write at most, and waits for others, and for issuers of
// tokens, no longer than its client does.
func (q *request) lasting(ctx context.Context) context.Context {
	if !q.table.Identity {
		ctx = context.WithValue(context.WithoutCancel(ctx), clientKey{}, ctx)
	}
	if throttle.ClassOf(q.table.Name, q.action) == throttle.Read {
		ctx = readcache.Allow(ctx)
	}
	return ctx
}

// admit finds the operation and the sender.
func (q *request) admit(w http.ResponseWriter, r *http.Request) (*Call, func() (awsshape.Object, error), error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, q.table.MaxBody()))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, nil, tooLarge(q.table)
	} else if err != nil {
		return nil, nil, &awsfault.Error{Code: "IncompleteBody", Message: "The body of the request ended too early", Cause: err}
	}
	routed, unrouted := q.codec.Route(q.table, awsshape.Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Asks: r.URL.ForceQuery, Header: r.Header, Body: body}, q.table.Limits())
	if routed.Service != nil {
		q.table = routed.Service
	}
	if routed.Codec != nil {
		q.codec = routed.Codec
	}
	if unrouted != nil {
		return nil, nil, q.unrouted(r, body, unrouted)
	}
	q.operation, q.action = routed.Operation, routed.Operation.Name
	caller, err := q.sender(r, body)
	if err != nil {
		return nil, nil, err
	}
	now := q.front.config.Now()
	if !q.front.Answers(q.table.Name, q.action) { // the list says why
		if _, err := awsroute.Decide(q.front.list, awsroute.Target{Service: q.table.Name, Action: q.action, Protocol: q.table.Protocol, Signed: true}); err != nil {
			return nil, nil, err
		}
	}
	if !q.table.Identity { // the gate counts the requests of each key, and STS those of each subject
		if err := q.front.rates.Allow(caller.Principal().String(), q.table.Name, q.action, now); err != nil {
			return nil, nil, err
		}
	}
	return &Call{Caller: caller, Service: q.table.Name, Action: q.action, ID: q.id, Now: now}, routed.Input, nil
}

// unrouted is the answer to a request without an operation. STS and IAM tell everybody, and other services those whose
// identity is proven.
func (q *request) unrouted(r *http.Request, body []byte, why error) error {
	if q.table.Identity {
		return why
	}
	if _, err := q.front.config.Gate.Admit(r, q.table.SignedName(), body); err != nil {
		return err
	}
	return why
}

// sender is who sent a request of the operation that was found. A signature is asked for unless exactly that operation
// is registered as unsigned.
func (q *request) sender(r *http.Request, body []byte) (Caller, error) {
	if q.front.actions[[2]string{q.table.Name, q.operation.Name}].unsigned {
		return q.front.config.Gate.Unsigned(r, q.table.Name, q.operation.Name)
	}
	return q.front.config.Gate.Admit(r, q.table.SignedName(), body)
}

// act decodes, asks IAM, and does the action.
func (q *request) act(ctx context.Context, call *Call, input func() (awsshape.Object, error)) (any, error) {
	registered, ok := q.front.actions[[2]string{q.table.Name, q.action}]
	if !ok {
		return nil, fmt.Errorf("%s:%s is on the list, and nothing answers it", q.table.Name, q.action)
	}
	var err error
	if call.Input, err = input(); err != nil {
		return nil, err
	}
	action, err := registered.read(call, q.operation, call.Input)
	if err != nil {
		return nil, err
	}
	if registered.begin != nil {
		end, err := registered.begin(ctx, call)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	if registered.rights != Policies {
		return action.do(ctx)
	}
	targets, err := action.about(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.authorize(call, targets); err != nil {
		return nil, err
	}
	still := &again{ask: func() error { return q.authorize(call, targets) }}
	output, err := action.do(context.WithValue(ctx, againKey{}, still))
	if refusal := still.refusal(); refusal != nil {
		return nil, refusal
	}
	return output, err
}

// authorize asks IAM about each resource.
func (q *request) authorize(call *Call, targets []Target) error {
	if len(targets) == 0 {
		return fmt.Errorf("%s:%s says of nothing what it is about", q.table.Name, q.action)
	}
	for _, target := range targets {
		q.resource = target.Resource
		asked := target.Action
		if asked == "" {
			asked = q.table.PolicyAction(q.action)
		}
		target.Conditions = lowered(target.Conditions)
		if call.Via != "" {
			target.Conditions["aws:calledvia"], target.Conditions["aws:calledviafirst"] = []string{call.Via}, []string{call.Via}
			target.Conditions["aws:calledvialast"], target.Conditions["aws:viaawsservice"] = []string{call.Via}, []string{"true"}
		}
		if err := q.front.config.Gate.Authorize(call.Caller, asked, target); err != nil {
			return err
		}
	}
	return nil
}

// lowered has the names of conditions in small letters. Tags whose keys differ in capitals alone are one condition, with the
// values of all of them: nobody chooses by a second tag which one a policy is asked about.
func lowered(conditions map[string][]string) map[string][]string {
	low := make(map[string][]string, len(conditions))
	for key, values := range conditions {
		key = strings.ToLower(key)
		had, twice := low[key]
		switch {
		case !twice:
			low[key] = values
		case !slices.Equal(had, values):
			low[key] = slices.Concat(had, values)
		}
	}
	return low
}
