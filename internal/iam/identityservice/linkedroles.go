// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

type createLinkedRoleIn struct {
	AWSServiceName            string
	Description, CustomSuffix *string
}

type deleteLinkedRoleOut struct{ DeletionTaskId string }

type deletionStatusIn struct {
	DeletionTaskId string
}

type deletionStatusOut struct{ Status string }

func (s *Service) registerLinkedRoles(front *awsfront.Front) {
	register(s, front, apiIAM, "CreateServiceLinkedRole", writes, func(c *call, in createLinkedRoleIn) (target, error) {
		r, err := c.linkedRole(in)
		t := tagged(r.ARN().String(), nil, nil)
		t.context["iam:awsservicename"] = []string{in.AWSServiceName}
		return t, err
	}, s.createLinkedRole)
	register(s, front, apiIAM, "DeleteServiceLinkedRole", writes, func(c *call, in roleIn) (target, error) { return c.aboutRole(in.RoleName), nil }, s.deleteLinkedRole)
	register(s, front, apiIAM, "GetServiceLinkedRoleDeletionStatus", reads, func(c *call, in deletionStatusIn) (target, error) {
		r, err := c.deletedRole(in.DeletionTaskId)
		return target{resource: r.ARN().String()}, err
	}, s.deletionStatus)
}

// linkedRole is the role that a request asks for, without an id.
func (c *call) linkedRole(in createLinkedRoleIn) (iam.Role, error) {
	services := iam.LinkedServices()
	i := slices.IndexFunc(services, func(s iam.LinkedService) bool { return s.Service == in.AWSServiceName })
	if i < 0 {
		known := make([]string, 0, len(services))
		for _, s := range services {
			known = append(known, s.Service)
		}
		return iam.Role{}, iamfault.Errorf(iamfault.InvalidInput, "AWSServiceName is %.100q: there are service-linked roles of %s", in.AWSServiceName, strings.Join(known, ", "))
	}
	service := services[i]
	r := iam.Role{
		Account: c.account, Path: iam.LinkedRolePath + service.Service + "/", Name: service.Role, MaxSession: iam.DefaultRoleSession, Created: moment(c.now),
		Trust: strings.ReplaceAll(nodeTrust, serviceEC2, service.Service), Grants: iam.Grants{Attached: []string{service.Policy}},
	}
	if in.CustomSuffix != nil && *in.CustomSuffix != "" {
		if !service.Suffix {
			return r, iamfault.Errorf(iamfault.InvalidInput, "Custom suffix is not allowed for %s", service.Service)
		}
		r.Name += "_" + *in.CustomSuffix
	}
	if in.Description != nil {
		r.Description = *in.Description
	}
	return r, firstError(iam.CheckRoleName(r.Name), iam.CheckDescription(r.Description))
}

func (s *Service) createLinkedRole(c *call, in createLinkedRoleIn) (*roleOut, error) {
	r, err := c.linkedRole(in)
	if err != nil {
		return nil, err
	}
	if c.state.taken(name(r)) {
		return nil, iamfault.Errorf(iamfault.InvalidInput, "Service role name %s has been taken in this account, please try a different suffix.", r.Name)
	}
	if r.ID, err = iam.NewID(iam.RolePrefix, s.config.Random); err != nil {
		return nil, err
	}
	return &roleOut{c.infoOfRole(r, true)}, s.config.Store.Create(c.ctx, r)
}

// deleteLinkedRole deletes at once: no service here keeps a role. The task's id names the role by its unique id, so
// that the status of the task can be told without a record of it.
func (s *Service) deleteLinkedRole(c *call, in roleIn) (*deleteLinkedRoleOut, error) {
	r, err := c.findRole(in.RoleName)
	if err != nil {
		return nil, err
	}
	if !r.Linked() {
		return nil, iamfault.Errorf(iamfault.NoSuchEntity, "The role with name %s is not a service-linked role: use DeleteRole.", r.Name)
	}
	return &deleteLinkedRoleOut{deletionTask + r.Path + r.Name + "/" + r.ID}, s.config.Store.Delete(c.ctx, c.state, r)
}

const deletionTask = "task"

// deletedRole reads the id of a deletion task: task/aws-service-role/SERVICE/ROLE/ID.
func (c *call) deletedRole(task string) (iam.Role, error) {
	parts := strings.Split(task, "/")
	if len(parts) != 5 || parts[0] != deletionTask || "/"+parts[1]+"/" != iam.LinkedRolePath || iam.CheckRoleName(parts[3]) != nil || !iam.IsID(iam.RolePrefix, parts[4]) ||
		!slices.ContainsFunc(iam.LinkedServices(), func(s iam.LinkedService) bool { return s.Service == parts[2] }) {
		return iam.Role{}, iamfault.Errorf(iamfault.InvalidInput, "DeletionTaskId is %.200q: it must be one that DeleteServiceLinkedRole returned", task)
	}
	return iam.Role{ID: parts[4], Account: c.account, Path: iam.LinkedRolePath + parts[2] + "/", Name: parts[3]}, nil
}

func (s *Service) deletionStatus(c *call, in deletionStatusIn) (*deletionStatusOut, error) {
	r, err := c.deletedRole(in.DeletionTaskId)
	if err != nil {
		return nil, err
	}
	if _, there := c.state.RoleByID(r.ID); there {
		return &deletionStatusOut{"IN_PROGRESS"}, nil
	}
	return &deletionStatusOut{"SUCCEEDED"}, nil
}

// changeableRole finds a role that others than its service may change.
func (c *call) changeableRole(name string) (iam.Role, error) {
	r, err := c.findRole(name)
	if err == nil && r.Linked() {
		err = iamfault.Errorf(iamfault.UnmodifiableEntity, "Cannot perform the operation on the protected role '%s' - this role is only modifiable by AWS", r.Name)
	}
	return r, err
}
