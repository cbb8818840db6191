"""What stands in ``cluster/``, made from the catalog: ``peagle cluster render``."""
