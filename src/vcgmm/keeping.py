"""A fitted mixture in a file, and as a model of other libraries."""

from __future__ import annotations

import os
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from .coreset import Coreset
from .interop import faiss_index, for_sklearn
from .mixture_parameters import fitted_metric
from .persistence import load_model, save_model
from .prediction import FittedMixture
from .validation import check_flag

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture
    from sklearn.pipeline import Pipeline


class KeptMixture(FittedMixture):
    """What VCGMM offers to keep a fitted mixture, or hand it on."""

    def save(self, path: str | os.PathLike[str], *, coreset: bool = False) -> None:
        """Write the fitted model to a file that `load` reads, also in every later version.

        The file is a safetensors file with a JSON header and a checksum: no pickle, and nothing in it is ever
        run. It holds all parameters and fitted attributes to the last bit, but for two: `callbacks`, which are
        code, and `coreset_`, which is a sample of the data (all of it, where the fit took all points), so that a
        model can be handed on without the data it was fitted to.

        Parameters
        ----------
        path : path-like
            Replaced if it exists, as a whole or not at all; `.vcgmm` is a good suffix.
        coreset : bool, default=False
            Write `coreset_` too: points, weights and indices.

        Raises
        ------
        ValueError
            With coreset=True, for a model that was loaded without one.
        """
        self._check_fitted()
        model = self
        if check_flag("coreset", coreset) and hasattr(self, "coreset_"):
            model = copy(self)
            model.coreset_ = self.coreset_.on_host()
        save_model(model, path, coreset=coreset)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` or `vcgmm fit` wrote; it predicts the same to the last bit.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        VCGMM

        Raises
        ------
        ValueError
            If the file holds something else, comes from a newer format, or has been changed or cut off.
        """
        model: Self = load_model(cls, Coreset.of, path)
        return model

    def to_sklearn(self) -> GaussianMixture | Pipeline:
        """The same mixture as scikit-learn's GaussianMixture, ready to predict.

        With metric="cosine" in a pipeline after a Normalizer, which scales rows to length 1.

        Its covariances are spherical or, where features have variances of their own, diagonal; its `lower_bound_`
        is a mean over the data's weight, as theirs is. Mind its memory: it makes arrays of rows times components.
        """
        self._check_fitted()
        return for_sklearn(self)

    def to_faiss(self, kind: str = "flat") -> Any:
        """The means in a faiss index, in float32; needs faiss.

        Parameters
        ----------
        kind : {"flat", "ivf"}, default="flat"
            "flat": an IndexFlatL2 that holds the means, which finds the nearest cluster of a vector.
            "ivf": an IndexIVFFlat with the clusters as its inverted lists, trained, empty, and ready for `add`.
            With metric="cosine" both go by inner products, and "flat" is an IndexFlatIP: vectors of any length
            find their cluster; scale them to length 1 before `add`, so that scores are cosines.

        Returns
        -------
        faiss.IndexFlatL2, faiss.IndexFlatIP or faiss.IndexIVFFlat
        """
        self._check_fitted()
        return faiss_index(self.means_, kind, fitted_metric(self))
