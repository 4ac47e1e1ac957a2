"""Fitted parameters applied to rows."""
