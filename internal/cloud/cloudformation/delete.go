// SPDX-License-Identifier: Apache-2.0

package cloudformation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
)

type deleteInput struct {
	StackName, RoleARN, ClientRequestToken, DeletionMode string
	RetainResources                                      []string
}

type nothing struct{}

func (s *Stacks) deleteStack() awsfront.Spec[deleteInput, nothing] {
	return awsfront.Spec[deleteInput, nothing]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteInput) ([]awsfront.Target, error) {
			conditions := map[string][]string{}
			asks(conditions, in.RoleARN, "", "", nil)
			targets, err := s.about(ctx, call, in.StackName, conditions)
			if err != nil {
				return nil, err
			}
			return s.withRole(ctx, targets, in.RoleARN)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteInput) (*nothing, error) {
			if in.DeletionMode != "" && in.DeletionMode != "STANDARD" {
				return nil, refuse("DeletionMode is %.50q: Muster deletes stacks by STANDARD; name resources that cannot be deleted in RetainResources", in.DeletionMode)
			}
			found, err := s.find(ctx, in.StackName)
			if fault, ok := errors.AsType[*awsfault.Error](err); ok && fault.Code == validation && !strings.HasPrefix(fault.Message, "StackName is empty") {
				return nil, nil // as CloudFormation answers about a stack that is not there
			}
			if err != nil {
				return nil, err
			}
			if err := s.imported(ctx, found, nil); err != nil {
				return nil, err
			}
			_, err = s.operate(ctx, call, found.ARN, in.ClientRequestToken, in.RoleARN, func(r *stackrecord.Record) ([]stack.Event, error) {
				if r.TerminationProtection {
					return nil, refuse("Stack [%s] cannot be deleted while TerminationProtection is enabled", r.Name)
				}
				state, events, err := r.State.Delete(in.RetainResources)
				if err != nil {
					return nil, refuse("Stack [%s]: %v", r.Name, err)
				}
				if len(events) > 0 {
					r.State, r.Deleted = state, s.Now().UTC().Truncate(time.Second)
				}
				return events, nil
			})
			return nil, err
		},
	}
}

// imported refuses that a stack loses an export that another one imports: its own imports go with it. The exports that it keeps are named.
func (s *Stacks) imported(ctx context.Context, r *stackrecord.Record, keeps []string) error {
	for _, output := range r.Outputs {
		if output.Export == "" || slices.Contains(keeps, output.Export) {
			continue
		}
		users, err := s.importers(ctx, output.Export)
		if err != nil {
			return err
		}
		if users = slices.DeleteFunc(users, func(name string) bool { return name == r.Name }); len(users) > 0 {
			return refuse("Export %s cannot be deleted as it is in use by %s", output.Export, strings.Join(users, ", "))
		}
	}
	return nil
}

type rollbackInput struct {
	StackName, RoleARN, ClientRequestToken string
	RetainExceptOnCreate                   *bool
}

func (s *Stacks) rollbackStack() awsfront.Spec[rollbackInput, stackOutput] {
	return awsfront.Spec[rollbackInput, stackOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *rollbackInput) ([]awsfront.Target, error) {
			return s.aboutRole(ctx, call, in.StackName, in.RoleARN)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *rollbackInput) (*stackOutput, error) {
			if err := notHere(map[string]bool{"RetainExceptOnCreate": in.RetainExceptOnCreate != nil && *in.RetainExceptOnCreate}); err != nil {
				return nil, err
			}
			return s.rollBack(ctx, call, in.StackName, in.ClientRequestToken, in.RoleARN, stack.CreateFailed, stack.UpdateFailed)
		},
	}
}

type continueInput struct {
	StackName, RoleARN, ClientRequestToken string
	ResourcesToSkip                        []string
	ForceRollback                          *bool
}

func (s *Stacks) continueRollback() awsfront.Spec[continueInput, nothing] {
	return awsfront.Spec[continueInput, nothing]{
		About: func(ctx context.Context, call *awsfront.Call, in *continueInput) ([]awsfront.Target, error) {
			return s.aboutRole(ctx, call, in.StackName, in.RoleARN)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *continueInput) (*nothing, error) {
			if err := notHere(map[string]bool{"ResourcesToSkip": len(in.ResourcesToSkip) > 0, "ForceRollback": in.ForceRollback != nil && *in.ForceRollback}); err != nil {
				return nil, err
			}
			_, err := s.rollBack(ctx, call, in.StackName, in.ClientRequestToken, in.RoleARN, stack.UpdateRollbackFailed)
			return nil, err
		},
	}
}

// aboutRole is what IAM is asked about a request that may pass a role.
func (s *Stacks) aboutRole(ctx context.Context, call *awsfront.Call, name, role string) ([]awsfront.Target, error) {
	conditions := map[string][]string{}
	asks(conditions, role, "", "", nil)
	targets, err := s.about(ctx, call, name, conditions)
	if err != nil {
		return nil, err
	}
	return s.withRole(ctx, targets, role)
}

// rollBack begins the rollback of a stack that is in one of some statuses.
func (s *Stacks) rollBack(ctx context.Context, call *awsfront.Call, name, token, role string, from ...stack.Status) (*stackOutput, error) {
	return s.operate(ctx, call, name, token, role, func(r *stackrecord.Record) ([]stack.Event, error) {
		if !slices.Contains(from, r.State.Status) {
			return nil, refuse("Stack:%s is in %s state and can not be rolled back by %s", r.ARN, r.State.Status, call.Action)
		}
		state, events, err := r.State.RollBack()
		if err != nil {
			return nil, refuse("Stack [%s]: %v", r.Name, err)
		}
		r.State = state
		return events, nil
	})
}

type protectionInput struct {
	StackName                   string
	EnableTerminationProtection bool
}

func (s *Stacks) updateProtection() awsfront.Spec[protectionInput, stackOutput] {
	return awsfront.Spec[protectionInput, stackOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *protectionInput) ([]awsfront.Target, error) {
			return s.about(ctx, call, in.StackName, nil)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *protectionInput) (*stackOutput, error) {
			found, err := s.find(ctx, in.StackName)
			if err != nil {
				return nil, err
			}
			r, err := s.store.Update(ctx, found.ID, func(r *stackrecord.Record) error {
				if r.State.Status == stack.DeleteComplete || r.State.Status == stack.DeleteInProgress {
					return refuse("Stack [%s] is in %s state: its termination protection cannot be changed", r.Name, r.State.Status)
				}
				r.TerminationProtection = in.EnableTerminationProtection
				return nil
			})
			if err != nil {
				return nil, away(err)
			}
			return &stackOutput{r.ARN}, nil
		},
	}
}
